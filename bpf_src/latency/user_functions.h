// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Functions of programs, at uprobes.
#ifndef LATENCY_USER_FUNCTIONS_H
#define LATENCY_USER_FUNCTIONS_H

#include "calls.h"
#include "jump_condition.h"

// Which helpers the kernel has.
enum bpf_func_id___registers {
	BPF_FUNC_task_pt_regs___registers = 175,
};

struct task_struct___stack {
	void *stack;
} __attribute__((preserve_access_index));

// The stack pointer that the current task entered the kernel with.
static __always_inline u64 own_user_sp(void)
{
	struct task_struct___stack *task = (void *)bpf_get_current_task();
	struct registers *registers;

	if (bpf_core_enum_value_exists(enum bpf_func_id___registers,
				       BPF_FUNC_task_pt_regs___registers))
		registers = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	else // before Linux 5.15: the end of the stack (task_pt_regs() of x86_64)
		registers = BPF_CORE_READ(task, stack) + KERNEL_STACK - sizeof(*registers);
	return kernel_word(&registers->sp);
}

// Calls that may return by one instruction: of functions that jump to the next one.
#define MOST_AT_ONCE 4

// A function of a program begins, as it is called or jumped to.
static __always_inline int enter_function(struct registers *ctx, u32 id)
{
	struct task_state *state = state_of(own_task(), false);
	struct stats *st = stats_here();
	u32 slot = DEPTH, outer = DEPTH;
	u64 place = ctx->sp, word;

	if (!st)
		return 0;
	if (state && !only_count) {
		settle(state, place, id, st);
		if (state->goes_on)
			return 0;
		slot = state->slot;
		outer = state->outer;
	}
	if (id == PASSED_THROUGH)
		return 0;
	word = argument_of(ctx);
	state = begin(id, word, st);
	if (state)
		push(state, slot, outer, id, place, word, st);
	return 0;
}

// A function of a program is about to go on in another one, at the same place of the stack.
static __always_inline int jump_on(struct registers *ctx)
{
	struct task_state *state = state_of(own_task(), false);
	struct stats *st = stats_here();

	if (state && st && is_taken(ctx->flags, function_at(ctx)))
		mark_jumped(state, ctx->sp, st);
	return 0;
}

// The innermost call at a place is over; when it began, 0: there is none. Not inline: there may be
// several.
static __noinline u64 end_at(struct task_state *state, u64 place, u64 now_ns, u64 *result,
			     struct slow_stacks *stacks)
{
	u32 at = find_place(state, place);
	struct frame *frame;

	OPAQUE(at);
	if (at >= DEPTH)
		return 0; // it began before the run, or is not asked for
	frame = &state->frames[at];
	add_up(state, at, now_ns, *result);
	if (stacks && now_ns - frame->start_ns >= slower_ns)
		send(frame, now_ns, result, stacks);
	frame->function = NO_FUNCTION;
	return frame->start_ns;
}

// The stack pointer is where the calls at `place` have their return address: they are over.
static __always_inline int leave_function(struct registers *ctx, bool has_result)
{
	u64 now_ns = bpf_ktime_get_ns(), place = ctx->sp, result = ctx->ax, since_ns;
	struct task_state *state = state_of(own_task(), false);
	struct stats *st = stats_here();
	struct slow_stacks stacks = {.has_result = has_result};
	bool is_slow = false;

	if (!state || !st)
		return 0;
	since_ns = first_start(state, place);
	if (!since_ns)
		return 0;
	if (now_ns - since_ns >= slower_ns)
		is_slow = find_stacks(ctx, &stacks, AT_RETURN, st);
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < MOST_AT_ONCE; i++)
		if (!end_at(state, place, now_ns, &result, is_slow ? &stacks : NULL))
			break;
	trim(state);
	if (state->depth)
		mark_left(state, place, since_ns, st);
	return 0;
}

#endif
