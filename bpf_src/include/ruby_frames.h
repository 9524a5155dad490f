// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The Ruby frames of the current thread, as words of python_layout.h: purebpf/runtimes/ruby/frames.py reads
// the same from outside.
//
// Offsets that all versions from 3.0 on share are here; user space checks them.
#ifndef RUBY_FRAMES_H
#define RUBY_FRAMES_H

#include "python_code.h"
#include "python_tasks.h"

#define RUBY_FRAME_BYTES 40 // of rb_control_frame_t; its words:
#define RUBY_PC 0
#define RUBY_ISEQ 2
#define RUBY_ENV 4
#define RUBY_METHOD_ENTRY 5 // and the words before the end of its environment
#define RUBY_FLAGS 7
#define RUBY_FINISH 0x20  // C code entered the loop for it
#define RUBY_SHARED 2	  // an object of the interpreter that has a method's entry
#define RUBY_ENTRY 6	  // and the entry itself
#define RUBY_IMMEDIATE 54 // instructions of the index of lines that have 7 bits each
#define RUBY_GROUP 9
#define RUBY_BLOCK 512 // and of one of the blocks behind
#define RUBY_BLOCK_AT 48
#define RUBY_BLOCK_BYTES 80
#define RUBY_MOST_LINE 0x7FFFFF

static __always_inline u64 count_bits(u64 bits)
{
	bits -= bits >> 1 & 0x5555555555555555ull;
	bits = (bits & 0x3333333333333333ull) + (bits >> 2 & 0x3333333333333333ull);
	bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0full;
	return bits * 0x0101010101010101ull >> 56;
}

// How many entries of a table of lines begin at an instruction or before it.
static __always_inline u64 ruby_rank(u64 index, u64 at)
{
	u64 bit, word, before = 0, bits;

	if (at < RUBY_IMMEDIATE)
		return user_word(index + at / RUBY_GROUP * 8) >> 7 * (at % RUBY_GROUP) & 0x7F;
	at -= RUBY_IMMEDIATE;
	index += RUBY_BLOCK_AT + at / RUBY_BLOCK * RUBY_BLOCK_BYTES;
	bit = at % 64;
	word = at % RUBY_BLOCK / 64;
	if (word)
		before = user_word(index + 8) >> RUBY_GROUP * (word - 1) & 0x1FF;
	bits = user_word(index + 16 + word * 8) & ((2ull << bit) - 1);
	return user_half(index) + before + count_bits(bits);
}

// The line of the instruction before `pc`, of the code of `code_fields`; 0: it has none.
__noinline u64 ruby_line(u32 place, u64 pc)
{
	struct python_walk *walk = bpf_map_lookup_elem(&python_walks, &place);
	u64 at, size, rank = 1;
	u32 line;

	if (!python_lines || !walk || walk->code_fields[RUBY_KIND] != RUBY_CODE)
		return 0;
	at = pc - walk->code_fields[RUBY_START];
	size = (u32)walk->code_fields[RUBY_LINES_SIZE];
	if (at & 7 || at >> 3 > walk->code_fields[RUBY_SIZE] >> 32)
		return 0;
	at >>= 3;
	if (at)
		at--;
	if (size > 1)
		rank = ruby_rank(walk->code_fields[RUBY_INDEX], at);
	if (!rank || rank > size)
		return 0;
	line = user_half(walk->code_fields[RUBY_LINES] + (rank - 1) * walk->layout.code_bytes);
	return line > RUBY_MOST_LINE ? 0 : line;
}

// The definition of a method written in C, by its entry or what has that; 0: it could not be read.
static __always_inline u64 ruby_definition(struct python_walk *walk, u64 entry)
{
	u64 *words = walk->text; // flags, an entry, a definition

	if (bpf_probe_read_user(words, 24, (void *)entry))
		return 0;
	if (ruby_kind(words[0]) == RUBY_SHARED && bpf_probe_read_user(words, 24, (void *)words[1]))
		return 0;
	return ruby_kind(words[0]) == RUBY_ENTRY ? words[2] : 0;
}

// Keeps the frame that comes next; 0: there is none.
__noinline int ruby_step(u32 place)
{
	struct python_walk *walk = bpf_map_lookup_elem(&python_walks, &place);
	u64 *fields, function, word;
	u32 depth;

	if (!walk)
		return 0;
	depth = walk->depth;
	fields = walk->frame_fields;
	OPAQUE(depth);
	if (!walk->frame || depth >= python_room())
		return 0;
	if (bpf_probe_read_user(fields, RUBY_FRAME_BYTES, (void *)walk->frame)) {
		walk->is_cut = 1;
		return 0;
	}
	walk->frame += walk->layout.frame_size;
	if (walk->frame >= walk->ruby_end)
		walk->frame = 0;
	function = fields[RUBY_ISEQ];
	if (function && !fields[RUBY_PC]) // of no function
		return 1;
	if (bpf_probe_read_user(&fields[RUBY_METHOD_ENTRY], 24, (void *)(fields[RUBY_ENV] - 16))) {
		walk->is_cut = 1;
		return 0;
	}
	if (!function) {
		function = ruby_definition(walk, fields[RUBY_METHOD_ENTRY]) | RUBY_IS_METHOD;
		fields[RUBY_FLAGS] = 0;
	}
	if (function != walk->code) { // else the function calls itself
		walk->number = code_number(place, function);
		walk->code = function;
	}
	word = PYTHON_TAG | (u64)walk->number << CODE_SHIFT | ruby_line(place, fields[RUBY_PC]);
	if (fields[RUBY_FLAGS] & RUBY_FINISH)
		word |= PYTHON_ENTRY;
	walk->words[depth] = word;
	walk->depth = depth + 1;
	return 1;
}

#endif
