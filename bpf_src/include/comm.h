// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The name of the current task, for a place that held another one before.
#ifndef PUREBPF_COMM_H
#define PUREBPF_COMM_H

#include "purebpf.h"

// The helper of Linux 6.1 writes the name and its NUL and leaves what is behind as it was: in a key
// that would make one name many.
static __always_inline void read_comm(char (*comm)[TASK_COMM_LEN])
{
	__builtin_memset(comm, 0, sizeof(*comm));
	bpf_get_current_comm(comm, sizeof(*comm));
}

#endif
