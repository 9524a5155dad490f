// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Every call that is open, for the end of a run.
#ifndef SUMMARY_LIST_H
#define SUMMARY_LIST_H

#include "decide.h"
#include "seccomp.h"

// A call that was open at the end. With start_ns 0 it was open at the start already.
struct open_call {
	u64 start_ns;
	u32 tgid;
	u32 tid;
	u32 nr;
	u8 abi;
	u8 verdict;
	u8 pad[2];
	char comm[TASK_COMM_LEN];
};

struct open_call *anchor_open_call; // keeps the type in BTF

// The call that a task without a state sleeps in; -1: none.
static __always_inline long call_of_sleeper(struct task_struct *task)
{
	struct pt_regs *regs;

	if (!task_pt_regs || !task->mm || !state_bits(task))
		return -1;
	regs = (void *)bpf_task_pt_regs(task);
	return call_in(regs);
}

SEC("?iter/task")
int list_open_calls(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct task_state *state;
	struct open_call call = {};
	long nr;

	if (!task)
		return 0;
	state = kept_state(task, false);
	if (state && state->start_ns) {
		call.start_ns = state->start_ns;
		call.nr = state->nr;
		call.abi = state->abi;
	} else {
		nr = state && decided(state->verdict) ? -1 : call_of_sleeper(task);
		if (nr < 0)
			return 0;
		call.nr = nr;
	}
	call.verdict = state ? state->verdict : UNDECIDED;
	call.tgid = task->tgid;
	call.tid = task->pid;
	if (pid_namespace_ino)
		numbers_of(task, &call.tgid, &call.tid);
	BPF_CORE_READ_STR_INTO(&call.comm, task, comm);
	bpf_seq_write(ctx->meta->seq, &call, sizeof(call));
	return 0;
}

#endif
