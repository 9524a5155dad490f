// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// System call summary: counts and times every call, exactly and without locks.
//
// A call opens in the state of its task and closes in statistics that have one writer each: the
// programs run with preemption off, or are kept from nesting, so a row that names its CPU (or its
// thread) is written by nobody else. See docs/design/0003-summary-statistics.md.
#include "summary/decide.h"
#include "summary/list.h"
#include "summary/rows.h"
#include "summary/wanted.h"

#define MAX_ERRNO 4095

CONFIG u32 exit_numbers[2][2] = {}; // exit and exit_group, by ABI

CONFIG u32 number_offset = 0; // where struct pt_regs has the number of the call

u32 phase = 0; // 0: off; else 1 + the epoch to write to

static __always_inline int enter(struct pt_regs *regs, long nr, bool btf)
{
	struct task_state *state;

	if (!phase || (s32)nr < 0) // a tracer has replaced the number
		return 0;
	state = own_state((u64)regs, true, btf);
	if (!state) {
		COUNT(states_full);
		return 0;
	}
	if (has_names || state->verdict != WANTED) {
		if (needs_verdict(state->verdict)) {
			decide(state, btf);
			state->newborn = false;
		}
		if (state->verdict == UNWANTED)
			return 0;
	}
	if (state->start_ns)
		COUNT(unreturned);
	state->nr = nr;
	state->abi = btf ? abi_of(regs) : abi_of_task();
	state->start_ns = bpf_ktime_get_ns();
	return 0;
}

// The number and the ABI of a call that returns without an entry. False: a tracer has replaced the
// number, and it is not known from when that stopped the task.
static __always_inline bool identify(struct task_state *state, struct pt_regs *regs, s32 nr,
				     bool btf)
{
	if (nr < 0 && state->abi & STOPPED) {
		state->abi &= ~STOPPED;
		return true;
	}
	state->nr = nr;
	state->abi = btf ? abi_of(regs) : abi_of_task();
	return nr >= 0;
}

// A return without an entry: from the call that made this task, from one that was open when the
// run began, or from one that seccomp or a tracer refused before its entry was traced. How long
// these last two took is not known.
static __noinline int unpaired(struct pt_regs *regs, long nr, u32 errno_value, bool btf)
{
	struct task_state *state = own_state(0, true, btf);
	u32 running = phase;
	bool known, born;

	if (!state) {
		COUNT(states_full);
		return 0;
	}
	known = decided(state->verdict);
	decide(state, btf);
	born = state->newborn;
	state->newborn = false;
	state->changed = true;
	if (state->verdict != WANTED || born || !running)
		return 0;
	if (!identify(state, regs, nr, btf)) {
		COUNT(unnamed);
		return 0;
	}
	if (known)
		COUNT(unpaired);
	else
		COUNT(open_at_start);
	if (!has_filters || return_wanted(state, errno_value))
		count(state, (running - 1) & 1, UNTIMED, errno_value);
	return 0;
}

static __always_inline int leave(struct pt_regs *regs, long nr, s64 result, bool btf)
{
	u32 errno_value = (u64)result >= (u64)-MAX_ERRNO ? -result : 0;
	u32 running = phase;
	struct task_state *state;
	s64 elapsed_ns;

	if (!running)
		return 0;
	elapsed_ns = bpf_ktime_get_ns();
	state = own_state((u64)regs, false, btf);
	if (!state || !state->start_ns) {
		if (!state || state->verdict != UNWANTED)
			unpaired(regs, btf ? call_in(regs) : nr, errno_value, btf);
		return 0;
	}
	elapsed_ns -= state->start_ns;
	state->start_ns = 0;
	if (state->verdict != WANTED)
		return 0;
	if (has_filters && !return_wanted(state, errno_value))
		return 0;
	if (elapsed_ns < 0) {
		COUNT(clock_backwards);
		elapsed_ns = 0;
	}
	count(state, (running - 1) & 1, elapsed_ns, errno_value);
	return 0;
}

static __always_inline int execve(u32 old_tid, u32 tid, bool btf)
{
	struct task_state *state = own_state(0, false, btf);

	if (!phase || !state)
		return 0;
	if (state->verdict == AWAITED)
		state->verdict = WANTED; // its execve counts
	if (state->verdict != WANTED)
		return 0;
	if (old_tid != tid)
		COUNT(tid_changed);
	if (!number(state))
		COUNT(outside_namespace);
	join_group(state, btf);
	state->changed = true;
	return 0;
}

static __always_inline void close_for_good(struct task_state *state, bool btf)
{
	u32 abi = state->abi & 1, nr = state->nr & ~X32_BIT;

	if (state->start_ns && state->verdict == WANTED) {
		if (nr == exit_numbers[abi][0] || nr == exit_numbers[abi][1])
			COUNT(exits);
		else
			COUNT(died);
	} else if (btf && state->verdict == WANTED && call_ended_by_seccomp()) {
		COUNT(died);
	}
	if (state->group && (mode == MODE_THREAD || state->tgid == state->tid))
		name_group(state, BPF_EXIST); // it may have been renamed
	// The state has nothing to take away at the last switch.
	*state = no_state;
}

static __always_inline int task_exit(bool btf)
{
	struct task_state *state = own_state(0, false, btf);

	if (phase && state)
		close_for_good(state, btf);
	forget_by_address(bpf_get_current_task());
	return 0;
}

SEC("?tp_btf/sys_enter")
int btf_sys_enter(u64 *ctx)
{
	return enter((void *)ctx[0], ctx[1], true);
}

SEC("?tp_btf/sys_exit")
int btf_sys_exit(u64 *ctx)
{
	return leave((void *)ctx[0], 0, ctx[1], true);
}

SEC("?tp_btf/sched_process_fork")
int btf_fork(u64 *ctx)
{
	struct task_struct *child = (void *)ctx[1];
	struct task_state *state;

	if (!phase)
		return 0;
	state = kept_state(child, true);
	if (!state) {
		COUNT(follow_full);
		return 0;
	}
	state->verdict = inherited(true);
	state->newborn = true;
	return 0;
}

SEC("?tp_btf/sched_process_exec")
int btf_exec(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];

	return execve(ctx[1], task->pid, true);
}

SEC("?tp_btf/sched_process_exit")
int btf_exit(u64 *ctx)
{
	return task_exit(true);
}

static __always_inline u64 state_of_leaver(struct task_struct *prev)
{
	if (bpf_core_field_exists(prev->__state))
		return prev->__state;
	return ((struct task_struct___before_5_14 *)prev)->state;
}

// A tracer stops a task before the kernel passes the tracepoint of its call, and may then replace the
// number of that call. `task` is still the current one.
static __noinline int remember_stop(struct task_struct *task, struct task_state *now)
{
	struct pt_regs *regs;
	s32 nr;

	if (!task_pt_regs)
		return 0;
	regs = (void *)bpf_task_pt_regs(task);
	nr = call_in(regs);
	if (nr < 0 || !has_no_result(regs))
		return 0;
	claim(now, (u64)regs);
	if (now->start_ns)
		return 0;
	now->nr = nr;
	now->abi = abi_by_flag(task) | STOPPED;
	now->changed = true;
	return 0;
}

SEC("?tp_btf/sched_switch")
int btf_switch(u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	struct task_state *now, *kept;
	u32 zero = 0;

	if (!phase)
		return 0;
	now = bpf_map_lookup_elem(&running, &zero);
	if (!now)
		return 0; // not so: there is one for each CPU
	if (state_of_leaver(prev) & TASK_TRACED)
		remember_stop(prev, now);
	if (now->task == (u64)prev && (now->start_ns || now->changed)) {
		now->changed = false;
		kept = kept_state(prev, true);
		if (kept)
			*kept = *now;
		else
			COUNT(states_full);
	} else if (now->start_ns) {
		COUNT(switches_missed);
	}
	*now = no_state;
	if (next->mm)
		fetch(now, next);
	if (now->regs)
		now->task = (u64)next;
	return 0;
}

// Without BTF: the same from raw tracepoints, whose arguments need no types, or from tracepoints.

SEC("?raw_tp/sys_enter")
int raw_sys_enter(struct bpf_raw_tracepoint_args *ctx)
{
	return enter(NULL, ctx->args[1], false);
}

// The number of a call by the address of its registers, where no types say where it is.
static __always_inline s32 call_at(u64 registers)
{
	s32 nr = -1;

	bpf_probe_read_kernel(&nr, sizeof(nr), (void *)(registers + number_offset));
	return nr;
}

SEC("?raw_tp/sys_exit")
int raw_sys_exit(struct bpf_raw_tracepoint_args *ctx)
{
	return leave(NULL, call_at(ctx->args[0]), ctx->args[1], false);
}

// What tracepoints pass behind their eight common bytes.
struct sys_enter_record {
	u64 common;
	long id;
};

struct sys_exit_record {
	u64 common;
	long id;
	long ret;
};

struct exec_record {
	u64 common;
	u32 filename;
	int pid;
	int old_pid;
};

SEC("?tracepoint/raw_syscalls/sys_enter")
int tp_sys_enter(struct sys_enter_record *ctx)
{
	return enter(NULL, ctx->id, false);
}

SEC("?tracepoint/raw_syscalls/sys_exit")
int tp_sys_exit(struct sys_exit_record *ctx)
{
	return leave(NULL, ctx->id, ctx->ret, false);
}

SEC("?tracepoint/sched/sched_process_fork")
int tp_fork(void *ctx)
{
	u32 child = 0;
	u8 verdict;

	if (!phase)
		return 0;
	verdict = inherited(false);
	bpf_probe_read_kernel(&child, sizeof(child), ctx + fork_child_offset);
	if (bpf_map_update_elem(&forked, &child, &verdict, BPF_ANY))
		COUNT(follow_full);
	return 0;
}

SEC("?tracepoint/sched/sched_process_exec")
int tp_exec(struct exec_record *ctx)
{
	return execve(ctx->old_pid, ctx->pid, false);
}

SEC("?tracepoint/sched/sched_process_exit")
int tp_exit(void *ctx)
{
	return task_exit(false);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
