// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Samples with the user registers of their task, sent to user space; the kernel appends the top of
// the user stack, as the event in `copies` asks for it (PERF_SAMPLE_STACK_USER).
#ifndef COPIED_SAMPLE_H
#define COPIED_SAMPLE_H

#include "copy_budget.h"
#include "copy_output.h"
#include "pid_namespace.h"
#include "targets.h"
#include "user_registers.h"

struct stack_copy {
	u64 time_ns; // CLOCK_MONOTONIC
	u32 cpu;
	u32 tgid;
	u32 tid;
	u32 is_compat; // a 32-bit task
	struct registers registers;
	char comm[TASK_COMM_LEN];
};

// Describes the current task and what it was interrupted in. False, and counted: it was not asked for,
// has no pid in our pid namespace; it has no user stack, or its registers could not be read.
static __always_inline bool take_sample(struct registers *ctx, bool typed,
					struct stack_copy *sample, u64 *others, u64 *outside,
					u64 *no_registers)
{
	u64 both = bpf_get_current_pid_tgid();

	sample->time_ns = bpf_ktime_get_ns();
	if (!own_numbers(both, typed, &sample->tgid, &sample->tid)) {
		(*outside)++;
		return false;
	}
	if (!both || !listed(sample->tgid, sample->tid) || !in_scope()) {
		(*others)++;
		return false;
	}
	if ((!is_of_user(ctx) && has_dropped_stack()) || !user_registers(ctx, &sample->registers)) {
		(*no_registers)++;
		return false;
	}
	sample->cpu = bpf_get_smp_processor_id();
	sample->is_compat = sample->registers.cs != USER_CS;
	bpf_get_current_comm(sample->comm, sizeof(sample->comm));
	return true;
}

#endif
