// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Functions of the kernel, at kprobes and trampolines.
#ifndef LATENCY_KERNEL_FUNCTIONS_H
#define LATENCY_KERNEL_FUNCTIONS_H

#include "calls.h"

CONFIG u32 result_at = 0; // the word of a trampoline's context that has the result

// At the entry, or at the return: with and, from Linux 6.19 on, without looking at the context.
extern bool bpf_session_is_return(void) __ksym __weak;
extern bool bpf_session_is_return___of(void *ctx) __ksym __weak;

// A function of the kernel begins. Whether the return matters.
static __always_inline bool enter_call(u32 id, u64 place, u64 word)
{
	struct stats *st = stats_here();
	struct task_state *state;
	u32 dropped;

	if (!st)
		return false;
	state = begin(id, word, st);
	if (!state)
		return false;
	dropped = drop_stale(state, place, id);
	if (dropped) {
		__sync_fetch_and_add(&st->returns_missed, dropped);
		state->skipped = 0;
	}
	push(state, DEPTH, state->depth - 1, id, place, word, st);
	return true;
}

// A function of the kernel returns. `ctx` says nothing of which call it was.
static __always_inline int leave_call(void *ctx, u32 id, u64 result)
{
	u64 now_ns = bpf_ktime_get_ns();
	struct task_state *state = state_of(own_task(), false);
	struct stats *st = stats_here();
	struct slow_stacks stacks = {.has_result = true};
	struct frame *frame;
	u32 at, depth;

	if (!state || !st)
		return 0;
	if (state->skipped) {
		state->skipped--;
		return 0;
	}
	at = find_frame(state, 0, id);
	OPAQUE(at);
	if (at >= DEPTH)
		return 0; // it began before the run, or is not asked for
	frame = &state->frames[at];
	depth = state->depth;
	if (depth > at + 1)
		__sync_fetch_and_add(&st->returns_missed, depth - at - 1);
	add_up(state, at, now_ns, result);
	if (now_ns - frame->start_ns >= slower_ns && find_stacks(ctx, &stacks, IN_KERNEL, st))
		send(frame, now_ns, &result, &stacks);
	state->depth = at;
	return 0;
}

// A word of a trampoline's context: its arguments, and behind them the result. The index is
// constant once the object is loaded: one of these remains.
static __always_inline u64 word_at(u64 *ctx, u32 index)
{
	switch (index) {
	case 0:
		return WORD(ctx, 8 * 0);
	case 1:
		return WORD(ctx, 8 * 1);
	case 2:
		return WORD(ctx, 8 * 2);
	case 3:
		return WORD(ctx, 8 * 3);
	case 4:
		return WORD(ctx, 8 * 4);
	case 5:
		return WORD(ctx, 8 * 5);
	case 6:
		return WORD(ctx, 8 * 6);
	case 7:
		return WORD(ctx, 8 * 7);
	case 8:
		return WORD(ctx, 8 * 8);
	case 9:
		return WORD(ctx, 8 * 9);
	case 10:
		return WORD(ctx, 8 * 10);
	case 11:
		return WORD(ctx, 8 * 11);
	case 12:
		return WORD(ctx, 8 * 12);
	}
	return 0;
}

#endif
