// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Pairs of events: tracepoints, and static probes of programs.
#ifndef LATENCY_PAIRS_H
#define LATENCY_PAIRS_H

#include "calls.h"

CONFIG u32 static_argument = 0; // enum static_place: where a static probe has it
CONFIG u32 static_register = 0; // bytes into struct pt_regs
CONFIG u32 static_index = 0;	// the same
CONFIG u32 static_shift = 0;	// of what is in the index
CONFIG u64 static_value = 0;	// a constant, or what is added to an address
CONFIG u32 static_size = 8;	// bytes of it
CONFIG bool static_signed = false;

// As purebpf/symbols/usdt_arguments.py reads notes.
enum static_place {
	STATIC_CONSTANT = 0,
	STATIC_REGISTER = 1,
	STATIC_MEMORY = 2,
	STATIC_ELEMENT = 3,
};

// Events in pairs need not nest: one that ends leaves the others where they are.
static __always_inline int enter_pair(u32 id, u64 word)
{
	struct stats *st = stats_here();
	struct task_state *state;

	if (!st)
		return 0;
	state = begin(id, word, st);
	if (!state)
		return 0;
	if (state->depth >= DEPTH) { // of pairs whose ends do not come
		u32 live = 0;

#pragma clang loop unroll(disable)
		for (u32 i = 0; i < DEPTH; i++)
			live += state->frames[i].function != NO_FUNCTION;
		__sync_fetch_and_add(&st->returns_missed, live);
		state->depth = 0;
	}
	push(state, DEPTH, DEPTH, id, 0, word, st);
	return 0;
}

static __always_inline int leave_pair(void *ctx, u32 id, enum moment moment)
{
	u64 now_ns = bpf_ktime_get_ns(), result = 0;
	struct task_state *state = state_of(own_task(), false);
	struct stats *st = stats_here();
	struct slow_stacks stacks = {};
	struct frame *frame;
	u32 at;

	if (!state || !st)
		return 0;
	at = find_frame(state, 0, id);
	OPAQUE(at);
	if (at >= DEPTH)
		return 0;
	frame = &state->frames[at];
	add_up(state, at, now_ns, 0);
	if (now_ns - frame->start_ns >= slower_ns && find_stacks(ctx, &stacks, moment, st))
		send(frame, now_ns, &result, &stacks);
	frame->function = NO_FUNCTION;
	trim(state);
	return 0;
}

static __always_inline u64 register_at(struct registers *ctx, u32 offset)
{
	u64 word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), (void *)ctx + offset);
	return word;
}

static __always_inline u64 static_word(struct registers *ctx)
{
	u64 word = static_value;
	u32 bits = 64 - 8 * static_size;

	if (static_argument != STATIC_CONSTANT)
		word += register_at(ctx, static_register);
	if (static_argument == STATIC_ELEMENT)
		word += register_at(ctx, static_index) << (static_shift & 3);
	if (static_argument == STATIC_MEMORY || static_argument == STATIC_ELEMENT) {
		u64 address = word;

		word = 0;
		if (static_size <= sizeof(word))
			bpf_probe_read_user(&word, static_size, (void *)address);
	}
	word <<= bits;
	return static_signed ? (u64)((s64)word >> bits) : word >> bits;
}

#endif
