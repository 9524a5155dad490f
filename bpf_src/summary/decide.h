// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Whose calls are wanted, and whose row they count in.
#ifndef SUMMARY_DECIDE_H
#define SUMMARY_DECIDE_H

#include "names.h"
#include "own_state.h"
#include "pid_namespace.h"
#include "verdict.h"

CONFIG u32 fork_child_offset = 0; // where the tracepoint sched_process_fork has child_pid

// Without BTF a fork says only the number of the child: thread number -> verdict.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, u32);
	__type(value, u8);
} forked SEC(".maps");

static __always_inline bool number(struct task_state *state)
{
	return own_numbers(bpf_get_current_pid_tgid(), true, &state->tgid, &state->tid);
}

static __always_inline void name_group(struct task_state *state, u64 flags)
{
	if (!keep_name(state->group, flags))
		COUNT(names_full);
}

// Tells apart two threads or processes that had the same number: when each began, in steps of
// about a millisecond. Numbers do not come round as fast as that.
static __always_inline u64 generation(bool btf)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	u64 began;

	if (!btf)
		return mode == MODE_THREAD ? bpf_ktime_get_ns() >> 20 << 32 : 0;
	if (mode == MODE_PROCESS)
		task = BPF_CORE_READ(task, group_leader);
	began = BPF_CORE_READ(task, start_time);
	return began >> 20 << 32;
}

// Whose row the current task's calls count in. Its name is the leader's in mode process.
static __always_inline void join_group(struct task_state *state, bool btf)
{
	bool leads = state->tgid == state->tid;

	if (mode != MODE_THREAD && mode != MODE_PROCESS)
		return;
	state->group = generation(btf) | (mode == MODE_THREAD ? state->tid : state->tgid);
	name_group(state, mode == MODE_THREAD || leads ? BPF_ANY : BPF_NOEXIST);
}

// What the fork of this task left in `forked`, where it could not reach the state.
static __always_inline void inherit(struct task_state *state)
{
	u32 number = bpf_get_current_pid_tgid();
	u8 *verdict = bpf_map_lookup_elem(&forked, &number);

	if (!verdict)
		return;
	state->verdict = *verdict;
	state->newborn = true;
	bpf_map_delete_elem(&forked, &number);
}

static __noinline void decide(struct task_state *state, bool btf)
{
	u8 before = state->verdict;
	bool numbered;

	if (!needs_verdict(before))
		return;
	if (fork_child_offset)
		inherit(state);
	numbered = number(state);
	state->verdict = judge(state->verdict, state->tgid, state->tid);
	if (state->verdict == before)
		return;
	state->changed = true;
	if (state->verdict != WANTED)
		return;
	if (!numbered)
		COUNT(outside_namespace);
	join_group(state, btf);
}

// What a new task begins with.
static __always_inline u8 inherited(bool btf)
{
	struct task_state *parent;

	if (!children_follow())
		return UNDECIDED;
	parent = own_state(0, false, btf);
	if (!parent)
		return UNDECIDED;
	decide(parent, btf);
	return parent->verdict == WANTED ? ADOPTED : UNDECIDED;
}

#endif
