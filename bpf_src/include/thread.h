// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What lists of threads say of each: how often it ran, and where its thread-specific data is.
#ifndef THREAD_H
#define THREAD_H

#include "task.h"

struct arm64_user_words {
	unsigned long tp_value;
} __attribute__((preserve_access_index));

struct thread_struct {
	unsigned long fsbase;	    // x86
	struct arm64_user_words uw; // arm64
} __attribute__((preserve_access_index));

struct task_struct___switches {
	unsigned long nvcsw;
	unsigned long nivcsw;
	struct thread_struct thread;
} __attribute__((preserve_access_index));

// 0: not known.
static __always_inline u64 thread_pointer(struct task_struct *task)
{
	struct thread_struct *thread = &((struct task_struct___switches *)task)->thread;

	if (bpf_core_field_exists(thread->fsbase))
		return BPF_CORE_READ(thread, fsbase);
	return bpf_core_field_exists(thread->uw.tp_value) ? BPF_CORE_READ(thread, uw.tp_value) : 0;
}

// Times that a thread left a CPU: as long as that is the same, it has not run.
static __always_inline u64 switches_of(struct task_struct *task)
{
	struct task_struct___switches *switches = (void *)task;

	return BPF_CORE_READ(switches, nvcsw) + BPF_CORE_READ(switches, nivcsw);
}

// The CPU that a task runs on, or ran on.
static __always_inline u32 cpu_of(struct task_struct *task)
{
	struct task_struct___before_5_14 *old = (void *)task;

	if (bpf_core_field_exists(task->thread_info.cpu))
		return BPF_CORE_READ(task, thread_info.cpu);
	return bpf_core_field_exists(old->cpu) ? BPF_CORE_READ(old, cpu) : 0;
}

#endif
