// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Calls whose entry was not traced: those that were in progress when the run began, and those that
// seccomp or a tracer refused. The kernel asks both before it passes the tracepoint sys_enter
// (kernel/entry/common.c: syscall_trace_enter), and passes sys_exit all the same.
#ifndef TRACE_UNSEEN_H
#define TRACE_UNSEEN_H

#include "call_arguments.h"
#include "losses.h"
#include "records.h"
#include "seccomp.h"

#define FORKS 4

CONFIG u32 fork_numbers[2][FORKS] = {}; // of calls that return twice, by ABI

struct kuid {
	u32 val;
} __attribute__((preserve_access_index));

struct cred {
	struct kuid uid;
} __attribute__((preserve_access_index));

struct task_struct___unseen {
	struct task_struct *real_parent;
	struct cred *real_cred;
} __attribute__((preserve_access_index));

// Whether a return is the first one of a new task. A child gets 0 of the call that made it, and no
// parent does. A helper that the kernel starts returns from no call at all: its registers are zero.
static __always_inline bool is_first_return(struct pt_regs *regs, s32 nr, u8 abi, s64 result)
{
	struct task_struct___unseen *task = (void *)bpf_get_current_task();
	u64 arguments[6];

	if (result)
		return false;
	for (int i = 0; i < FORKS; i++)
		if (nr == fork_numbers[abi & 1][i])
			return true;
	if (nr)
		return false;
	read_call_arguments(arguments, (void *)regs, abi);
	return !(arguments[0] | arguments[1] | arguments[2]) &&
	       BPF_CORE_READ(task, real_parent, flags) & PF_KTHREAD;
}

// Begins the record of a call with what its registers say. Its strings are copied when it returns.
static __always_inline void fill_unseen(struct call *call, struct pt_regs *regs, u32 nr, u8 abi,
					u32 tgid, u32 tid)
{
	call->event.tgid = tgid;
	call->event.tid = tid;
	call->nr = nr;
	call->abi = abi;
	call->is_awaited = 0;
	call->missed = 0xffff;
	call->entered = 0;
	call->used = 0;
	call->stack = 0;
	call->open = OPEN;
	read_call_arguments(call->arguments, (void *)regs, abi);
	call->event.time_ns = bpf_ktime_get_ns();
}

// Opens the call that the current task returns from, or ends in. NULL: it is not wanted.
static __always_inline struct task_state *open_unseen(struct pt_regs *regs, s64 result)
{
	struct task_state *state = state_of(own_task(), false);
	s32 nr = call_in(regs);
	u8 abi = abi_of(regs);
	u32 tgid, tid;

	if (state) {
		if (nr < 0 && state->call.open == STOPPED)
			nr = state->call.nr;
		state->call.open = CLOSED;
	}
	if (!own_task_wanted(&tgid, &tid) || is_first_return(regs, nr, abi, result))
		return NULL;
	if (nr < 0) {
		if (!has_calls)
			COUNT(numbers_unknown);
		return NULL;
	}
	if (has_calls && !call_wanted(nr, abi))
		return NULL;
	state = state_of(own_task(), true);
	if (state)
		fill_unseen(&state->call, regs, nr, abi, tgid, tid);
	else
		COUNT(states_full);
	return state;
}

// The call that a task sleeps in, of which no state knows; -1: none. Its entry was before the run.
static __always_inline s32 call_of_sleeper(struct task_struct *task, struct pt_regs *regs)
{
	if (!task->mm || !(state_bits(task) & (TASK_INTERRUPTIBLE | TASK_UNINTERRUPTIBLE)) ||
	    state_bits(task) & (TASK_STOPPED | TASK_TRACED) || !has_no_result(regs))
		return -1;
	return call_in(regs);
}

#endif
