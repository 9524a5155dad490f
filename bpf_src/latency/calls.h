// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Calls that begin and end, of functions and of pairs of events.
#ifndef LATENCY_CALLS_H
#define LATENCY_CALLS_H

#include "event.h"
#include "frames.h"
#include "rows.h"
#include "user_registers.h"

// By cookie, or, on kernels without cookies (before Linux 5.15), of the whole object.
CONFIG bool has_cookies = true;
CONFIG u32 function = 0;
CONFIG u32 argument = 0; // which is grouped by, or shown: 1 to 6; 0: none
CONFIG bool only_count = false;
CONFIG bool with_tree = false;

// Beside a number, what the cookie of a function's entry may be.
#define ENTRY_ONLY (1U << 31)	   // its calls are counted; where they end is not known
#define PASSED_THROUGH 0x7fffffffU // it is only jumped to from one that is timed

static __always_inline u32 function_at(void *ctx)
{
	return has_cookies ? bpf_get_attach_cookie(ctx) : function;
}

static __always_inline u64 argument_of(struct registers *ctx)
{
	switch (argument) {
	case 1:
		return REGISTER(ctx, di);
	case 2:
		return REGISTER(ctx, si);
	case 3:
		return REGISTER(ctx, dx);
	case 4:
		return REGISTER(ctx, cx);
	case 5:
		return REGISTER(ctx, r8);
	case 6:
		return REGISTER(ctx, r9);
	}
	return 0;
}

// Not inline: there are many programs.
static __noinline int fill(struct task_state *state, u32 at, u32 outer, u32 id)
{
	struct frame *frame, *caller;

	OPAQUE(at);
	if (at >= DEPTH)
		return 0;
	frame = &state->frames[at];
	frame->function = id;
	frame->outer = outer;
	frame->level = 0;
	frame->is_left = 0;
	frame->has_jumped = 0;
	frame->outer_path = 0;
	frame->child_ns = 0;
	OPAQUE(outer);
	if (outer < DEPTH) {
		caller = &state->frames[outer];
		frame->level = caller->level + 1;
		frame->outer_path = caller->path;
	}
	if (with_tree)
		frame->path = path_below(frame->outer_path, id);
	return 0;
}

// Puts a call that begins into a frame: one that settle() found, or the next.
static __always_inline void push(struct task_state *state, u32 slot, u32 outer, u32 id, u64 place,
				 u64 word, struct stats *st)
{
	u32 depth = state->depth;
	bool in_kernel = place & KERNEL_SPACE;

	if (!depth)
		state->skipped = 0;
	if (slot >= depth)
		slot = depth;
	if (slot >= DEPTH && !in_kernel)
		slot = spare_frame(state);
	OPAQUE(slot);
	if (slot >= DEPTH) {
		state->skipped += in_kernel;
		COUNT(st, too_deep);
		return;
	}
	if (slot == depth)
		state->depth = depth + 1; // first: what interrupts this has frames above
	state->frames[slot].place = place;
	state->frames[slot].argument = word;
	fill(state, slot, outer, id);
	state->frames[slot].start_ns = bpf_ktime_get_ns();
}

// The state of the current task if its calls are asked for; NULL: they are not, or it has no place.
static __always_inline struct task_state *begin(u32 id, u64 word, struct stats *st)
{
	struct task_state *state;
	u32 tgid, tid;

	if (!own_task_wanted(&tgid, &tid))
		return NULL;
	COUNT(st, begun);
	if (!tid && bpf_get_current_pid_tgid())
		COUNT(st, outside_namespace);
	if (only_count || id & ENTRY_ONLY) {
		COUNT(st, counted);
		add_to_row(id & ~ENTRY_ONLY, 0, word);
		return NULL;
	}
	state = state_of(own_task(), true);
	if (!state)
		COUNT(st, states_full);
	return state;
}

// The call in a frame is over. Not inline: several may end at once.
static __noinline int add_up(struct task_state *state, u32 at, u64 now_ns, u64 result)
{
	struct stats *st = stats_here();
	struct frame *frame;
	u64 took_ns;
	u32 outer;

	OPAQUE(at);
	if (at >= DEPTH || !st)
		return 0;
	frame = &state->frames[at];
	took_ns = now_ns - frame->start_ns;
	COUNT(st, ended);
	if (frame->is_left)
		COUNT(st, returns_late);
	outer = frame->outer;
	OPAQUE(outer);
	if (with_tree) {
		// A call that was left and has ended may have lost its caller to another one.
		if (outer < DEPTH && state->frames[outer].path == frame->outer_path &&
		    !frame->is_left)
			state->frames[outer].child_ns += took_ns;
		add_to_node(frame, frame->outer_path, took_ns);
	}
	if (took_ns >= least_ns)
		add_to_row(frame->function, took_ns,
			   grouping == BY_RESULT ? result : frame->argument);
	return 0;
}

#endif
