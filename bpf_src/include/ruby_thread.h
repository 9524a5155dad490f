// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The execution context of the current thread, in Ruby.
#ifndef RUBY_THREAD_H
#define RUBY_THREAD_H

#include "python_memory.h"

#define RUBY_BLOCKS 8		   // from the thread pointer, in glibc: the blocks of modules
#define RUBY_MOST_STACK (1u << 27) // words of the frames of a fiber

// The execution context of the current thread, and the end of its frames, into the walk at a place; 0:
// Ruby does not know the thread, or it has no frames.
__noinline u64 ruby_context(u32 place)
{
	struct python_walk *walk = bpf_map_lookup_elem(&python_walks, &place);
	struct python_process *layout;
	u64 at = 0, context, end;

	if (!walk || !thread_pointer_at)
		return 0;
	layout = &walk->layout;
	bpf_probe_read_kernel(&at, sizeof(at),
			      (void *)(bpf_get_current_task() + thread_pointer_at));
	if (layout->is_indirect) {
		at = link_word(walk, at + RUBY_BLOCKS);
		at = link_word(walk, at + layout->slot_inner);
	}
	context = link_word(walk, at + (s64)layout->slot);
	if (!context || walk->is_cut)
		return 0;
	at = link_word(walk, context + layout->thread_id);
	if (link_word(walk, at + layout->thread_interpreter) != context)
		return 0;
	// its memory, the size of that in words, and the innermost frame
	if (bpf_probe_read_user(walk->text, 24, (void *)context)) {
		walk->is_cut = 1;
		return 0;
	}
	if (!walk->text[0] || walk->text[1] > RUBY_MOST_STACK || walk->text[2] < walk->text[0])
		return 0;
	end = walk->text[0] + walk->text[1] * 8 - layout->frame_size;
	if (walk->text[2] >= end)
		return 0;
	walk->ruby_end = end;
	return context;
}

#endif
