// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The Python thread state of the current thread, and of the thread in the main interpreter that called
// its interpreter.
#ifndef PYTHON_THREAD_H
#define PYTHON_THREAD_H

#include "python_memory.h"
#include "ruby_thread.h"

#define MOST_CALLERS 64 // thread states of the main interpreter, the newest, that are looked at

// The thread state of the current thread; 0: Python does not know it. False: it could not be read.
static __always_inline bool read_thread_state(struct python_process *layout, u64 *state)
{
	u64 pointer = 0, slot, owner = 0;

	*state = 0;
	if (!thread_pointer_at)
		return true;
	bpf_probe_read_kernel(&pointer, sizeof(pointer),
			      (void *)(bpf_get_current_task() + thread_pointer_at));
	pointer -= layout->pointer_distance;
	slot = pointer + (s64)layout->slot;
	if (layout->is_indirect) {
		u64 block = 0;

		if (bpf_probe_read_user(&block, sizeof(block), (void *)slot))
			return false;
		if (!block)
			return true;
		slot = block + layout->slot_inner;
	}
	if (bpf_probe_read_user(state, sizeof(*state), (void *)slot))
		return false;
	if (!*state)
		return true;
	if (bpf_probe_read_user(&owner, sizeof(owner), (void *)(*state + layout->thread_id))) {
		*state = 0;
		return false;
	}
	if (owner != pointer)
		*state = 0;
	return true;
}

static __always_inline u64 thread_state(struct python_process *layout)
{
	u64 state;

	read_thread_state(layout, &state);
	return state;
}

// The state of the current thread in the main interpreter, when it runs another one: it called that
// one, and waits for it. 0: not found, or the main interpreter runs.
__noinline u64 calling_state(u32 place, u64 state)
{
	struct python_walk *walk = bpf_map_lookup_elem(&python_walks, &place);
	struct python_process *layout;
	u64 pointer, other;

	if (!walk)
		return 0;
	layout = &walk->layout;
	if (!layout->main_interpreter || walk->is_main)
		return 0;
	pointer = link_word(walk, state + layout->thread_id);
	other = link_word(walk, layout->main_interpreter + layout->threads);
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < MOST_CALLERS; i++) {
		OPAQUE(i);
		if (!other)
			return 0;
		if (user_word(other + layout->thread_id) == pointer)
			return other;
		other = user_word(other + layout->thread_next);
	}
	return 0;
}

// The thread state of the current thread, and whose it is: into the walk at a place.
__noinline int find_state(u32 place)
{
	struct python_walk *walk = bpf_map_lookup_elem(&python_walks, &place);
	struct python_process *layout;
	u64 state;

	if (!walk)
		return 0;
	layout = &walk->layout;
	if (layout->style == RUBY_FRAMES) {
		walk->is_cut = 0;
		walk->is_main = 0;
		walk->state = ruby_context(place);
		return 0;
	}
	if (layout->style == PHP_FRAMES) {
		u64 both = bpf_get_current_pid_tgid();

		walk->is_cut = 0;
		walk->is_main = 0;
		walk->state = (u32)both == both >> 32 ? layout->executor : 0;
		return 0;
	}
	walk->is_cut = !read_thread_state(layout, &state);
	walk->is_main = state && layout->main_interpreter &&
			link_word(walk, state + layout->thread_interpreter) ==
				layout->main_interpreter;
	walk->state = state;
	return 0;
}

#endif
