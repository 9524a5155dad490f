// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Processes by name. The name of a process is that of its first thread, as in /proc/PID/comm: most
// programs give other names to the threads that do their work.
#ifndef CALLED_H
#define CALLED_H

#include "task.h"

CONFIG bool has_name = false;
CONFIG char wanted_name[TASK_COMM_LEN] = {}; // NULs behind the name

// Compares a name in the kernel's memory as far as a task keeps it. A new name may be longer.
static __always_inline bool is_wanted_name(const void *name)
{
	char own[TASK_COMM_LEN] = {};

	if (!has_name || bpf_probe_read_kernel_str(own, sizeof(own), name) < 0)
		return false;
	for (int i = 0; i < TASK_COMM_LEN; i++) {
		if (own[i] != wanted_name[i])
			return false;
		if (!own[i])
			break;
	}
	return true;
}

#endif
