// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The identity of the program that a process executes.
#ifndef PROCESS_IDENTITY_H
#define PROCESS_IDENTITY_H

#include "task.h"
#include "unwind_tables.h"

#define EXECUTED_BITS 10
#define EXECUTED_MASK ((1 << EXECUTED_BITS) - 1)

struct task_struct___exec {
	u64 self_exec_id; // 32 bits wide before Linux 5.7 (d1e7fd6462ca)
} __attribute__((preserve_access_index));

// Changes when a process executes another program, and when its number is used again: when the
// process began (CLOCK_MONOTONIC, 54 bits), and how many programs it has executed (10 bits; a child
// begins with the number of its parent).
static __always_inline u64 process_identity(void)
{
	struct task_struct *leader =
		BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), group_leader);
	struct task_struct___exec *executed = (void *)leader;

	return BPF_CORE_READ(leader, start_time) << EXECUTED_BITS |
	       (BPF_CORE_READ(executed, self_exec_id) & EXECUTED_MASK);
}

// Whether a list is of the program that a process executes. The child that was reported at a time
// began before it; one that gets its number later begins later.
static __always_inline bool is_of(struct process_mappings *known, u64 identity)
{
	if (!known->is_forked)
		return known->identity == identity;
	return !((known->identity ^ identity) & EXECUTED_MASK) &&
	       (long)(known->identity - identity) >= 0;
}

#endif
