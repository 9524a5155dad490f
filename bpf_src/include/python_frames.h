// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The Python frames of the current thread, read by itself: nothing changes while they are read.
// See docs/design/0011-python-frames.md.
//
// All memory belongs to the process and may hold anything: every loop is bounded, and a frame that
// cannot be read ends the walk. python_layout.h describes the words of frames.
#ifndef PYTHON_FRAMES_H
#define PYTHON_FRAMES_H

#include "php_frames.h"
#include "python_code.h"
#include "python_tasks.h"
#include "python_thread.h"
#include "ruby_frames.h"

#define PYTHON_STRIDE 16 // frames that one of two loops is for: see unwind_walk.h
// FRAME_OWNED_BY_CSTACK (3.12), FRAME_OWNED_BY_INTERPRETER (3.14): a frame without code, below the
// first frame of a call.
#define SHIM 3
#define NO_FRAME 0xFFFFFFD // in place of the frames that could not be read

// Keeps the frame that comes next; 0: there is none.
__noinline int python_step(u32 place)
{
	struct python_walk *walk = bpf_map_lookup_elem(&python_walks, &place);
	struct python_process *layout;
	u64 frame, code, word;
	u32 depth;
	u8 owner = 0;

	if (!walk)
		return 0;
	layout = &walk->layout;
	depth = walk->depth;
	frame = walk->frame;
	OPAQUE(depth);
	if (!frame || depth >= python_room())
		return 0;
	if (!read_fields(walk->frame_fields, layout->frame_size, frame)) {
		walk->is_cut = 1;
		return 0;
	}
	walk->frame = field(walk->frame_fields, layout->frame_previous);
	if (layout->style != EVERY_FRAME)
		owner = field(walk->frame_fields, layout->frame_owner);
	if (layout->style == SHIM_FRAMES && owner >= SHIM) {
		u32 last = depth - 1;

		OPAQUE(last);
		if (last < python_room())
			walk->words[last] |= PYTHON_ENTRY;
		return 1;
	}
	code = field(walk->frame_fields, layout->frame_code) & ~STACK_REF_TAG;
	if (code != walk->code) { // else the function calls itself
		walk->number = code_number(place, code);
		walk->code = code;
	}
	word = PYTHON_TAG | (u64)walk->number << CODE_SHIFT | instruction_of(walk, code);
	if (layout->style == EVERY_FRAME || !walk->frame ||
	    (layout->style == ENTRY_FLAG && owner == 1))
		word |= PYTHON_ENTRY;
	walk->words[depth] = word;
	walk->depth = depth + 1;
	if (python_async && frame == walk->task_frame)
		walk->task_depth = depth + 1;
	return 1;
}

// A number of frames; 0: there are no more.
__noinline int take_python_steps(u32 place)
{
	struct python_walk *walk = bpf_map_lookup_elem(&python_walks, &place);
	int more = 1;
	u8 style;

	if (!walk)
		return 0;
	style = walk->layout.style;

#pragma clang loop unroll(disable)
	for (u32 taken = 0; taken < PYTHON_STRIDE; taken++) {
		OPAQUE(taken);
		if (style == PHP_FRAMES)
			more = php_step(place);
		else if (style == RUBY_FRAMES)
			more = ruby_step(place);
		else
			more = python_step(place);
		if (!more)
			break;
	}
	return more;
}

// Adds the frames of a thread state to the walk at a place.
__noinline int walk_state(u32 place, u64 state)
{
	struct python_walk *walk = bpf_map_lookup_elem(&python_walks, &place);

	if (!walk)
		return 0;
	walk->frame = link_word(walk, state + walk->layout.frame);
	if (walk->layout.has_current && walk->frame)
		walk->frame = link_word(walk, walk->frame + walk->layout.current);
	// a shim takes a turn, too
#pragma clang loop unroll(disable)
	for (u32 taken = 0; taken < 2 * python_room(); taken += PYTHON_STRIDE) {
		OPAQUE(taken);
		if (!take_python_steps(place))
			break;
	}
	return 0;
}

// In place of the frames that could not be read.
static __always_inline void mark_cut(struct python_walk *walk)
{
	u32 depth = walk->depth;

	OPAQUE(depth);
	if (depth >= python_room())
		return;
	walk->words[depth] = PYTHON_TAG | PYTHON_ENTRY | (u64)NO_FRAME << CODE_SHIFT;
	walk->depth = depth + 1;
}

// A function of its own, or part of the calling one: a chain of calls has eight frames at most.
#ifdef INLINE_WALK_OF_PYTHON
#define WALK_OF_PYTHON static __always_inline
#else
#define WALK_OF_PYTHON __noinline
#endif

// Reads the Python frames of the current task; the walk at `place` has them.
WALK_OF_PYTHON int walk_python(u32 place, u32 process, u64 identity)
{
	struct python_walk *walk = bpf_map_lookup_elem(&python_walks, &place);
	struct python_process *layout = bpf_map_lookup_elem(&pythons, &process);
	struct python_stats *st = bpf_map_lookup_elem(&python_stats, &place);
	u32 is_called = 0;

	if (!walk)
		return 0;
	walk->depth = 0;
	if (!layout || !st || (layout->identity && layout->identity != identity))
		return 0;
	walk->layout = *layout;
	walk->code = 0;
	walk->file = 0;
	walk->php_outermost = 0;
	walk->number = NO_CODE;
	walk->newest = layout->newest;
	walk->frame = 0;
	find_state(place);
	if (python_async)
		find_task(place, process, walk->state);
	if (walk->state)
		walk_state(place, walk->state);
	if (walk->state && !walk->frame && !walk->is_cut && !walk->is_main) {
		walk->state = calling_state(place, walk->state);
		walk->newest = layout->newest;
		walk->is_main = is_called = walk->state != 0;
		if (walk->state)
			walk_state(place, walk->state);
	}
	if (walk->is_main && walk->newest > layout->newest)
		layout->newest = walk->newest;
	if (!walk->depth && !walk->is_cut)
		return 0;
	if (python_async) {
		if (is_called) // tasks are those of the interpreter that was called
			walk->is_main = 0;
		walk_tasks(place);
	}
	st->python_stacks += walk->depth != 0;
	st->python_frames += walk->depth;
	st->python_cut += walk->is_cut && walk->depth;
	st->python_too_deep += walk->frame != 0 && !walk->is_cut;
	if (walk->is_cut)
		mark_cut(walk);
	return walk->depth;
}

#endif
