// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The PHP frames of the current thread, as words of python_layout.h: purebpf/runtimes/php/frames.py reads
// the same from outside. Only the first thread of a process runs scripts.
//
// Offsets that all versions from 8.0 on share are here; user space checks them.
#ifndef PHP_FRAMES_H
#define PHP_FRAMES_H

#include "python_code.h"
#include "python_tasks.h"

#define PHP_FRAME_BYTES 56 // of zend_execute_data; its words:
#define PHP_OPLINE 0
#define PHP_FUNCTION 3
#define PHP_OBJECT 4
#define PHP_INFO 5
#define PHP_PREVIOUS 6
#define PHP_OPLINE_LINE 24
#define PHP_MOST_LINE 0x7FFFFF
#define PHP_CLASS 16 // in an object
#define PHP_TYPE 15  // of a value
#define PHP_IS_OBJECT 8
#define PHP_TOP (1u << 17) // a call for which C code entered the loop
#define GENERATOR_FRAME 56 // in a generator
#define GENERATOR_PARENT 152
#define MOST_GENERATORS 16 // that wait for each other by `yield from`

// The line of the instruction that a frame executes. Functions of C have none.
static __always_inline u64 php_line(struct python_walk *walk)
{
	u32 line;

	if (!python_lines || (u8)walk->code_fields[PHP_KIND] == PHP_INTERNAL)
		return 0;
	line = user_half(walk->frame_fields[PHP_OPLINE] + PHP_OPLINE_LINE);
	return line > PHP_MOST_LINE ? 0 : line;
}

// The frame of the generator that waits for `php_above`, from the outermost one on; after that one,
// the frame of its caller.
__noinline u64 waiting_generator(u32 place)
{
	struct python_walk *walk = bpf_map_lookup_elem(&python_walks, &place);
	u64 at, parent = 0;

	if (!walk)
		return 0;
	at = walk->php_outermost;
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < MOST_GENERATORS && walk->php_above != walk->php_outermost; i++) {
		OPAQUE(i);
		parent = user_word(at + GENERATOR_PARENT);
		if (parent == walk->php_above && parent) {
			walk->php_above = at;
			return user_word(at + GENERATOR_FRAME);
		}
		if (!parent) { // the one that runs: its frame is known
			walk->php_above = at;
			at = walk->php_outermost;
			continue;
		}
		at = parent;
	}
	walk->php_outermost = 0;
	return walk->php_caller;
}

// The frame that follows one without a function: that of a generator that waits, or of the caller.
static __always_inline u64 behind_placeholder(struct python_walk *walk, u32 place)
{
	u64 object = walk->frame_fields[PHP_OBJECT];

	walk->php_caller = walk->frame_fields[PHP_PREVIOUS];
	if ((walk->frame_fields[PHP_INFO] & PHP_TYPE) != PHP_IS_OBJECT ||
	    !walk->layout.generators ||
	    user_word(object + PHP_CLASS) != user_word(walk->layout.generators))
		return walk->php_caller;
	walk->php_outermost = object;
	walk->php_above = 0;
	return waiting_generator(place);
}

// Keeps the frame that comes next; 0: there is none.
__noinline int php_step(u32 place)
{
	struct python_walk *walk = bpf_map_lookup_elem(&python_walks, &place);
	u64 function, word;
	u32 depth;

	if (!walk)
		return 0;
	depth = walk->depth;
	OPAQUE(depth);
	if (!walk->frame || depth >= python_room())
		return 0;
	if (bpf_probe_read_user(walk->frame_fields, PHP_FRAME_BYTES, (void *)walk->frame)) {
		walk->is_cut = 1;
		return 0;
	}
	function = walk->frame_fields[PHP_FUNCTION];
	if (!function) {
		walk->frame = behind_placeholder(walk, place);
		return 1;
	}
	if (function != walk->code) { // else the function calls itself
		walk->number = code_number(place, function);
		walk->code = function;
	}
	word = PYTHON_TAG | (u64)walk->number << CODE_SHIFT | php_line(walk);
	if (walk->php_outermost) {
		walk->frame = waiting_generator(place);
	} else {
		walk->frame = walk->frame_fields[PHP_PREVIOUS];
		if ((u8)walk->code_fields[PHP_KIND] != PHP_INTERNAL &&
		    ((walk->frame_fields[PHP_INFO] & PHP_TOP) || !walk->frame))
			word |= PYTHON_ENTRY;
	}
	walk->words[depth] = word;
	walk->depth = depth + 1;
	return 1;
}

#endif
