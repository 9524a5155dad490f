// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The state of the task that runs, at hand for the two ends of its calls.
#ifndef SUMMARY_OWN_STATE_H
#define SUMMARY_OWN_STATE_H

#include "records.h"

// The state of the task that runs on each CPU: sched_switch brings it and takes it away. To find
// the task and its storage at both ends of every call would cost a third more. Whose it is can be
// seen by where its registers are, at the top of its stack: a switch that was not traced shows.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct task_state);
} running SEC(".maps");

// As state_of(). But where the storage has no place for one, calls are not lost: there are spares.
static __always_inline struct task_state *kept_state(struct task_struct *task, bool create)
{
	struct task_state *state = NULL;

	if (task_storage)
		state = stored_state(task, create);
	return state ? state : state_by_address((u64)task, create);
}

// Fetches the state of a task that came to this CPU; there may be none.
static __always_inline void fetch(struct task_state *now, struct task_struct *task)
{
	struct task_state *kept = kept_state(task, false);

	if (!kept) {
		*now = no_state;
		return;
	}
	*now = *kept;
	kept->start_ns = 0; // so that it is open in one place
}

// Makes the state in `running` the current task's, where sched_switch did not.
static __noinline void claim(struct task_state *now, u64 regs)
{
	struct task_struct *task = own_task();

	if (now->task != (u64)task) {
		if (now->start_ns)
			COUNT(switches_missed);
		fetch(now, task);
		now->task = (u64)task;
	}
	if (regs && now->regs != regs) {
		now->regs = regs;
		now->changed = true;
	}
}

// The state of the current task. With `regs`, its registers, this is a few instructions.
static __always_inline struct task_state *own_state(u64 regs, bool create, bool btf)
{
	struct task_state *now;
	u32 zero = 0;

	if (!btf)
		return kept_state(own_task(), create);
	now = bpf_map_lookup_elem(&running, &zero);
	if (now && (!regs || now->regs != regs))
		claim(now, regs);
	return now;
}

#endif
