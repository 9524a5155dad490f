// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The end of a process, seen from the tracepoint sched_process_exit of its last thread.
#ifndef PROCESS_END_H
#define PROCESS_END_H

#include "task.h"

#define SIGNAL_GROUP_EXIT 0x4 // include/linux/sched/signal.h

struct atomic_counter {
	int counter;
} __attribute__((preserve_access_index));

struct signal_struct {
	struct atomic_counter live;
	int group_exit_code;
	unsigned int flags;
} __attribute__((preserve_access_index));

struct task_struct___process {
	struct task_struct *real_parent;
	struct signal_struct *signal;
	int exit_code;
} __attribute__((preserve_access_index));

// Two threads that end at once may both be told so.
static __always_inline bool is_last_thread(struct task_struct *task)
{
	return !BPF_CORE_READ((struct task_struct___process *)task, signal, live.counter);
}

// What wait(2) tells the parent: the code with which the group was ended, or else its leader's,
// whichever thread was the last (wait_task_zombie in kernel/exit.c).
static __always_inline u32 exit_code_of(struct task_struct *leader)
{
	struct task_struct___process *process = (void *)leader;
	struct signal_struct *signal = BPF_CORE_READ(process, signal);

	if (BPF_CORE_READ(signal, flags) & SIGNAL_GROUP_EXIT)
		return BPF_CORE_READ(signal, group_exit_code);
	return BPF_CORE_READ(process, exit_code);
}

#endif
