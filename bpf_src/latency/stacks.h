// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The stacks that slow calls end in.
#ifndef LATENCY_STACKS_H
#define LATENCY_STACKS_H

#define PLACES 4 // programs that are preempted at the same time: see take_place()
#include "places.h"

#define RETURN_ADDRESS(at, word) ((word) & 4095 ? (word) : diverted_return(at, word))

// The kernel has put the address of a page of its own where the return addresses of user functions
// are that are traced (uretprobes, xol_area in kernel/events/uprobes.c): what was at an address
// before, if the current task is in such a call.
__noinline u64 diverted_return(u64 at, u64 word)
{
	struct task_state *state = state_of(own_task(), false);

	if (!state)
		return word;
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < DEPTH; i++) {
		u32 outer = i;

		OPAQUE(outer);
		if (outer >= DEPTH || outer >= state->depth)
			break;
		if (state->frames[outer].place == at && state->frames[outer].back)
			return state->frames[outer].back;
	}
	return word;
}

#include "user_stacks.h"

bool phase = false; // user space is ready for copies

// What a function that begins will return to; 0: it is none of a program.
static __always_inline u64 return_address(struct task_state *state, u64 place)
{
	u64 word;

	if (!place || place & KERNEL_SPACE || !read_user(&word, sizeof(word), place))
		return 0;
	return RETURN_ADDRESS(place, word); // another function may have jumped to this one
}

// Tells user space, in case that it has to finish a stack, of the calls that the one at `depth` was
// made in.
static __always_inline void note_diverted(u32 place, struct task_state *state, u32 depth)
{
	struct missed_stack *record = bpf_map_lookup_elem(&missed, &place);

	if (!record)
		return;
	record->is_diverted = true;
#pragma clang loop unroll(full)
	for (u32 i = 0; i < DIVERTED_RETURNS; i++) {
		u32 outer = depth - 1 - i;
		u64 at = 0, address = 0;

		OPAQUE(outer);
		if (outer < DEPTH) {
			at = state->frames[outer].place;
			address = state->frames[outer].back;
		}
		record->returns[i].at = at;
		record->returns[i].address = address;
	}
}

// At the return of a user function its registers are those behind the call, and the stack begins
// with the caller. Kernel frames of a program that interrupted user code are those of the probe.
// False: the run has not begun.
static __always_inline bool find_stacks(void *ctx, struct slow_stacks *stacks,
					struct task_state *state, u32 depth, bool in_user,
					struct stats *st)
{
	u32 place, tgid, tid;

	if (!phase)
		return false;
	place = take_place();
	if (place >= PLACES) {
		COUNT(st, places_taken);
		stacks->user = STACK_LOST;
		return true;
	}
	own_numbers(bpf_get_current_pid_tgid(), true, &tgid, &tid);
	note_diverted(place, state, depth);
	stacks->user = user_stack_by_ticket(ctx, place, tgid, in_user);
	if (!in_user)
		stacks->kernel = kernel_stack_of(ctx, place);
	give_back(place);
	return true;
}

#endif
