// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Reads words and structs of a Python process. All of its memory may hold anything.
#ifndef PYTHON_MEMORY_H
#define PYTHON_MEMORY_H

#include "python_layout.h"

static __always_inline u64 user_word(u64 address)
{
	u64 word = 0;

	bpf_probe_read_user(&word, sizeof(word), (void *)address);
	return word;
}

static __always_inline u32 user_half(u64 address)
{
	u32 half = 0;

	bpf_probe_read_user(&half, sizeof(half), (void *)address);
	return half;
}

// A word at an offset in bytes.
static __always_inline u64 field(u64 *fields, u32 offset)
{
	u8 *bytes = (u8 *)fields;

	offset &= FIELD_BYTES - 1;
	OPAQUE(offset);
	return *(u64 *)(bytes + (offset & (FIELD_BYTES - 1)));
}

// A word that tells what comes next, 0: nothing. What cannot be read cuts the walk; without a branch,
// which verifiers follow again and again in loops.
static __always_inline u64 link_word(struct python_walk *walk, u64 address)
{
	u64 word = 0;

	walk->is_cut |= bpf_probe_read_user(&word, sizeof(word), (void *)address);
	return word;
}

// Fills the fields of a frame, or of a code object; false: it could not be read.
static __always_inline bool read_fields(u64 *to, u64 size, u64 address)
{
	OPAQUE(size); // as 64 bits: Linux 6.1 forgets what a comparison of 32 says of the rest
	if (size > FIELD_BYTES)
		size = FIELD_BYTES;
	return !bpf_probe_read_user(to, size, (void *)address);
}

static __always_inline bool read_word(u64 *to, u64 address)
{
	return !bpf_probe_read_user(to, sizeof(*to), (void *)address);
}

static __always_inline bool read_byte(u8 *to, u64 address)
{
	return !bpf_probe_read_user(to, sizeof(*to), (void *)address);
}

#endif
