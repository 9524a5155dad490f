// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The name of the current task, for a place that held another one before.
#ifndef PUREBPF_COMM_H
#define PUREBPF_COMM_H

#include "purebpf.h"

// The helper of Linux 6.1 leaves what is behind the NUL as it was (before commit f3f213497797, "bpf:
// ensure all memory is initialized in bpf_get_current_comm"): in a key that makes one name many.
static __always_inline void read_comm(char (*comm)[TASK_COMM_LEN])
{
	__builtin_memset(comm, 0, sizeof(*comm));
	bpf_get_current_comm(comm, sizeof(*comm));
}

#endif
