// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The calls that a task is in: which have begun, and not returned yet.
#ifndef LATENCY_FRAMES_H
#define LATENCY_FRAMES_H

#include "events.h"
#include "stats.h"

#define DEPTH 64 // calls that a task may be in at once

#define KERNEL_SPACE (1ULL << 63) // the place of a function of the kernel whose stack is not known
#define KERNEL_STACK 16384	  // bytes, and what it is aligned to: THREAD_SIZE of x86_64

#define NO_FUNCTION (~0U) // a frame that is over, below one that is not

struct frame {
	u64 start_ns;
	u64 place;    // where the return address is; 0 of pairs
	u64 child_ns; // that the calls took which it made
	u64 argument;
	u64 path; // of functions, from the outermost to this one
	u64 outer_path;
	u32 function;
	u8 outer; // the frame that it was called in; DEPTH: none
	u8 level; // calls that it was made in
	// Of a function of a program: the stack pointer has passed it, so it was left without a return
	// (longjmp, an exception), or the thread has moved to another stack for a while (a coroutine).
	u8 is_left;
	u8 has_jumped; // it is about to go on in another function (a tail call)
};

struct task_state {
	u32 depth;
	u32 skipped; // calls of the kernel that began beyond DEPTH, and have not returned
	// What loops below find: not in registers, as verifiers would follow each value.
	u32 slot;    // settle(): a free frame above all calls in progress; DEPTH: none
	u32 outer;   // the call that the new one is made in; DEPTH: none
	u32 goes_on; // the function has jumped to its own start: no new call
	u32 found;   // find_place()
	u64 first_ns;
	struct frame frames[DEPTH];
};

#define SPARE_STATES 64
#include "task_state.h"

// Whether a call of the kernel cannot be in progress any more when `function` begins at a place: its
// return address would be overwritten.
static __always_inline bool is_stale(struct frame *frame, u64 place, u32 function)
{
	if (!(frame->place & KERNEL_SPACE))
		return false;
	if (place == KERNEL_SPACE || (place ^ frame->place) >= KERNEL_STACK)
		return false; // on another stack
	return frame->place < place || (frame->place == place && frame->function == function);
}

// Drops the innermost calls of the kernel that are over; how many.
static __noinline u32 drop_stale(struct task_state *state, u64 place, u32 function)
{
	u32 dropped = 0;

#pragma clang loop unroll(disable)
	for (u32 i = 0; i < DEPTH; i++) {
		u32 last = state->depth - 1;

		OPAQUE(last);
		if (last >= DEPTH || !is_stale(&state->frames[last], place, function))
			break;
		state->depth = last;
		dropped++;
	}
	return dropped;
}

// Which frame of a function is innermost, at a place unless that is 0; DEPTH: none.
static __noinline u32 find_frame(struct task_state *state, u64 place, u32 function)
{
	u32 depth = state->depth;

#pragma clang loop unroll(disable)
	for (u32 i = 0; i < DEPTH; i++) {
		u32 at = depth - 1 - i;
		struct frame *frame;

		OPAQUE(at);
		if (at >= DEPTH)
			break;
		frame = &state->frames[at];
		if (frame->function == function && (!place || frame->place == place))
			return at;
	}
	return DEPTH;
}

static __noinline int trim(struct task_state *state)
{
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < DEPTH; i++) {
		u32 last = state->depth - 1;

		OPAQUE(last);
		if (last >= DEPTH || state->frames[last].function != NO_FUNCTION)
			break;
		state->depth = last;
	}
	return 0;
}

// A function of a program begins at a place: it has been called, or jumped to. A call whose return
// address is overwritten is over. One with a stack pointer below is over, too, unless it is on another
// stack: it stays, marked as left, in case that its return is seen after all.
static __noinline int settle(struct task_state *state, u64 place, u32 function, struct stats *st)
{
	u32 depth = state->depth;

	state->slot = DEPTH;
	state->outer = DEPTH;
	state->goes_on = 0;
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < DEPTH; i++) {
		u32 at = depth - 1 - i;
		struct frame *frame;

		OPAQUE(at);
		if (at >= DEPTH)
			break;
		frame = &state->frames[at];
		if (frame->function == NO_FUNCTION) {
			state->slot = at;
		} else if (frame->place == place && frame->has_jumped) {
			frame->has_jumped = 0;
			if (frame->function == function)
				state->goes_on = 1;
			if (state->outer == DEPTH)
				state->outer = at;
		} else if (frame->place == place || frame->place & KERNEL_SPACE) {
			if (!frame->is_left)
				COUNT(st, returns_missed);
			frame->function = NO_FUNCTION;
			state->slot = at;
		} else if (frame->is_left) {
			continue;
		} else if (frame->place < place) {
			frame->is_left = 1;
			COUNT(st, returns_missed);
		} else {
			if (state->outer == DEPTH)
				state->outer = at;
			break;
		}
	}
	return trim(state);
}

// A frame that can be given up for another one; DEPTH: none.
static __noinline u32 spare_frame(struct task_state *state)
{
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < DEPTH; i++) {
		struct frame *frame = &state->frames[i];

		if (frame->function == NO_FUNCTION || frame->is_left)
			return i;
	}
	return DEPTH;
}

// The innermost call with its return address at a place, one that is not left before others; DEPTH:
// none.
static __noinline u32 find_place(struct task_state *state, u64 place)
{
	u32 depth = state->depth;

	state->found = DEPTH;
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < DEPTH; i++) {
		u32 at = depth - 1 - i;
		struct frame *frame;

		OPAQUE(at);
		if (at >= DEPTH)
			break;
		frame = &state->frames[at];
		if (frame->place != place || frame->function == NO_FUNCTION)
			continue;
		if (!frame->is_left || state->found == DEPTH)
			state->found = at;
		if (!frame->is_left)
			break;
	}
	return state->found;
}

// When the first call with its return address at a place began; 0: there is none.
static __noinline u64 first_start(struct task_state *state, u64 place)
{
	state->first_ns = 0;
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < DEPTH; i++) {
		struct frame *frame = &state->frames[i];

		if (i >= state->depth)
			break;
		if (frame->function == NO_FUNCTION || frame->place != place)
			continue;
		if (!state->first_ns || frame->start_ns < state->first_ns)
			state->first_ns = frame->start_ns;
	}
	return state->first_ns;
}

// The stack pointer is at a place: marks the calls below it that began after a time.
static __noinline int mark_left(struct task_state *state, u64 place, u64 since_ns, struct stats *st)
{
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < DEPTH; i++) {
		struct frame *frame = &state->frames[i];

		if (i >= state->depth)
			break;
		if (frame->function == NO_FUNCTION || frame->is_left || frame->place >= place ||
		    frame->start_ns < since_ns)
			continue;
		frame->is_left = 1;
		COUNT(st, returns_missed);
	}
	return 0;
}

// The functions at a place go on in another one.
static __noinline int mark_jumped(struct task_state *state, u64 place, struct stats *st)
{
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < DEPTH; i++) {
		struct frame *frame = &state->frames[i];

		if (i >= state->depth)
			break;
		if (frame->function == NO_FUNCTION || frame->place != place)
			continue;
		if (frame->is_left)
			COUNT(st, returns_late);
		frame->is_left = 0;
		frame->has_jumped = 1;
	}
	return 0;
}

#endif
