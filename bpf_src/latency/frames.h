// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The calls that a task is in: which have begun, and not returned yet.
#ifndef LATENCY_FRAMES_H
#define LATENCY_FRAMES_H

#include "purebpf.h"

// The kernel follows as many returns of a thread (MAX_URETPROBE_DEPTH, include/linux/uprobes.h).
#define DEPTH 64

#define KERNEL_SPACE (1ULL << 63) // the place of a function of the kernel whose stack is not known
#define KERNEL_STACK 16384	  // bytes, and what it is aligned to: THREAD_SIZE of x86_64

#define NO_FUNCTION (~0U) // a frame that is over, below one that is not

struct frame {
	u64 start_ns;
	u64 place;    // where the return address is; 0 of pairs
	u64 back;     // that address, of user functions: the kernel diverts it (uretprobes); or 0
	u64 child_ns; // that the calls took which it made
	u64 argument;
	u64 path; // of functions, from the outermost to this one
	u32 function;
	u32 pad;
};

struct task_state {
	u32 depth;
	u32 skipped; // calls that began beyond DEPTH, and have not returned
	struct frame frames[DEPTH];
};

#define SPARE_STATES 64
#include "task_state.h"

// Whether a call cannot be in progress any more when `function` begins at a place: its return
// address would be overwritten. The kernel forgets returns by the same rule (prepare_uretprobe());
// at the same place another function may have been jumped to (a tail call).
static __always_inline bool is_stale(struct frame *frame, u64 place, u32 function)
{
	bool is_kernel = place & KERNEL_SPACE, was_kernel = frame->place & KERNEL_SPACE;

	if (is_kernel != was_kernel)
		return was_kernel; // the task is back in user mode
	if (is_kernel && (place == KERNEL_SPACE || (place ^ frame->place) >= KERNEL_STACK))
		return false; // on another stack
	return frame->place < place || (frame->place == place && frame->function == function);
}

// Drops the innermost calls that are over; how many.
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

#endif
