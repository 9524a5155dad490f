// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Every task of the machine, for what was off the CPU when a run began or still is when it ends.
#ifndef OFFCPU_LIST_H
#define OFFCPU_LIST_H

#include "account.h"
#include "cpus.h"
#include "pid_namespace.h"
#include "thread.h"
#include "verdict.h"

CONFIG bool task_pt_regs = true; // bpf_task_pt_regs() is there (Linux 5.15, commit dd6e10fbd9fb)

bool forgets = false; // what is listed is forgotten: the run is over, another one begins
bool brief = false;   // what is listed has no stack and no registers

struct pt_regs {
	unsigned long bp; // x86
} __attribute__((preserve_access_index));

// A task at the start or the end of a run. Where the programs have not seen it yet, its state is
// empty but for numbers, name and kernel stack.
struct listed_task {
	struct task_state known;
	struct registers registers; // it is in user space there
	u64 pthread;		    // the thread pointer; 0: not known
	u32 state;
	u8 on_cpu;
	u8 is_kernel_thread;
	u8 has_registers;
	u8 pad;
};

struct listed_task *anchor_listed_task; // keeps the type in BTF

// As if the programs had never seen the task.
static __always_inline void forget_state(struct task_state *state)
{
	state->since_ns = 0;
	state->waking_ns = 0;
	state->pending_ns = 0;
	state->pending_waking_ns = 0;
	state->verdict = UNDECIDED;
	state->place = UNSEEN;
	no_waker(&state->key);
}

static __always_inline void describe(struct listed_task *listed, struct task_struct *task)
{
	u32 place = LIST_PLACE;
	struct stack *room = bpf_map_lookup_elem(&scratch, &place);
	struct pt_regs *regs;
	long size;

	listed->known.cpu = cpu_of(task);
	listed->known.key.tgid = task->tgid;
	listed->known.key.tid = task->pid;
	if (pid_namespace_ino)
		numbers_of(task, &listed->known.key.tgid, &listed->known.key.tid);
	BPF_CORE_READ_STR_INTO(&listed->known.key.comm, task, comm);
	if (listed->on_cpu || !room || brief)
		return;
	if (kernel_stacks) {
		size = bpf_get_task_stack(task, room->addresses, sizeof(room->addresses), 0);
		listed->known.key.kernel_stack = // lost only if the task is wanted
			size < 0 ? STACK_UNAVAILABLE : keep(place, KERNEL_BIT, size, 0);
	}
	if (!user_stacks || !task_pt_regs || listed->is_kernel_thread)
		return;
	regs = (void *)bpf_task_pt_regs(task);
	if (!arm64_code_bits && !bpf_core_field_exists(regs->bp))
		return; // another machine
	listed->has_registers = registers_at(regs, &listed->registers);
	if (python)
		listed->pthread = thread_pointer(task);
}

SEC("?iter/task")
int list_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct listed_task listed = {};
	struct task_state *state;

	if (!task)
		return 0;
	listed.on_cpu = task->on_cpu != 0;
	listed.is_kernel_thread = (task->flags & PF_KTHREAD) != 0;
	listed.state = state_from(state_bits(task));
	if (listed.state == STATE_DEAD && !forgets)
		return 0; // its first thread stays until all others have ended
	state = state_of(task, false);
	if (state)
		listed.known = *state;
	if (listed.known.verdict == UNWANTED)
		return 0;
	if (listed.known.place == ON_CPU && !cpu_wanted(cpu_of(task)))
		listed.known.place = ASIDE; // what it does there was not asked for
	if (!decided(listed.known.verdict) || listed.known.place == UNSEEN)
		describe(&listed, task);
	// What finds no room is listed again, with the same state.
	if (!bpf_seq_write(ctx->meta->seq, &listed, sizeof(listed)) && forgets && state)
		forget_state(state);
	return 0;
}

#endif
