// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Leaves of x86_64 without rules, for walk_guesses.h: purebpf/unwind/leaf.py says when the word at
// the stack pointer is their return address.
#ifndef WALK_LEAF_H
#define WALK_LEAF_H

#include "walk_call.h"
#include "walk_lookup.h"

#define FAR_BYTES (1u << 16)
#define STUB_CODE 16 // bytes
#define ENDBR64 0xfa1e0ff3
#define RET 0xc3

enum call_kind {
	NO_CALL = 0,
	CALL_ANYWHERE = 1, // through a pointer, or a stub of a PLT; others are addresses
};

static __always_inline bool is_plt_stub(u64 address)
{
	u8 code[STUB_CODE];
	u32 at;

	if (!read_user(code, sizeof(code), address))
		return false;
	at = *(u32 *)code == ENDBR64 ? 4 : 0;
	if (at) {
		if ((code[4] == 0xff && code[5] == 0x25) ||
		    (code[4] == 0xf2 && code[5] == 0xff && code[6] == 0x25))
			return true;
		return code[4] == 0x68 &&
		       (code[9] == 0xe9 || (code[9] == 0xf2 && code[10] == 0xe9));
	}
	if ((code[0] == 0xff && code[1] == 0x25) ||
	    (code[0] == 0xf2 && code[1] == 0xff && code[2] == 0x25))
		return true;
	return code[0] == 0x68 && (code[5] == 0xe9 || (code[5] == 0xf2 && code[6] == 0xe9));
}

// Where the call leads that stands before a word, if it is an address in code; or enum call_kind.
__noinline u64 called_from(u32 place, u64 word)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	u64 code, target;

	if (!walk || find_mapping(place, word - 1) != GO_ON || !walk->mapping.exe)
		return NO_CALL;
	if (!read_user(&code, sizeof(code), word - sizeof(code)) || !ends_in_call(code))
		return NO_CALL;
	if (CODE(5) != 0xe8 || CALL_INDIRECT(7))
		return CALL_ANYWHERE;
	target = word + (long)((int)(code >> 32));
	return is_plt_stub(target) ? CALL_ANYWHERE : target;
}

#define PIECE_BYTES 16 // that one of two loops is for: the verifier looks at each loop by itself

// Whether a frame pointer is set up in a piece of `walk->code`, of which `size` bytes are read.
__noinline int is_set_up_in_piece(u32 place, u32 start, u32 size)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);

	if (!walk)
		return 1;
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < PIECE_BYTES; i++) {
		u32 at = start + i, bytes;

		OPAQUE(i);
		OPAQUE(at);
		if (at >= NEAR_BYTES || at + 3 > size)
			break;
		bytes = *(u32 *)&walk->code[at] & 0xffffff;
		if (bytes == 0xe58948 || bytes == 0xec8b48)
			return 1;
	}
	return 0;
}

// Whether a frame pointer was set up in so many bytes of code: mov %rsp, %rbp. 1 or 0.
__noinline int has_set_up(u32 place, u64 start, u64 size)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);

	if (!walk)
		return 1;
	OPAQUE(size);
	if (size > NEAR_BYTES || bpf_probe_read_user(walk->code, size, (void *)start))
		return 1;
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < NEAR_BYTES; i += PIECE_BYTES) {
		OPAQUE(i);
		if (is_set_up_in_piece(place, i, size))
			return 1;
	}
	return 0;
}

#define SOON_BYTES 16 // before a return, in which an epilogue has given back the stack already

enum code_ahead {
	RETURNS_LATER = 0,
	FREES_STACK = 1, // before it returns: its return address is not at the stack pointer
	RETURNS_SOON = 2,
};

// Whether a byte may follow `leave`: ret, or a jump to another function. Else 0xc9 is an operand, as
// in dec %ecx.
static __always_inline bool is_behind_leave(u8 code)
{
	return code == RET || code == 0xc2 || code == 0xf3 || code == 0xe9 || code == 0xeb ||
	       code == 0xff;
}

// The same of a piece of `walk->code`; or GO_ON.
__noinline int look_at_piece(u32 place, u32 start)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	u32 last = start - 1;
	u8 before = 0;

	if (!walk)
		return FREES_STACK;
	OPAQUE(last);
	if (last < NEAR_BYTES) // not at the first piece
		before = walk->code[last];
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < PIECE_BYTES; i++) {
		u32 at = start + i, bytes;

		OPAQUE(i);
		OPAQUE(at);
		if (at >= NEAR_BYTES)
			break;
		bytes = *(u32 *)&walk->code[at];
		if ((u8)bytes == RET) {
			if ((before & 0xf8) == 0x58) // pop
				return FREES_STACK;
			return at < SOON_BYTES ? RETURNS_SOON : RETURNS_LATER;
		}
		if ((u8)bytes == 0xc9 && is_behind_leave(bytes >> 8))
			return FREES_STACK;
		before = bytes;
		bytes &= 0xffffff; // add $n, %rsp; lea n(%rbp), %rsp
		if (bytes == 0xc48348 || bytes == 0xc48148 || bytes == 0x658d48)
			return FREES_STACK;
	}
	return GO_ON;
}

// What code does before it returns: enum code_ahead.
__noinline int look_ahead(u32 place)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	int found;

	if (!walk || !read_user(walk->code, NEAR_BYTES, walk->pc))
		return FREES_STACK;
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < NEAR_BYTES; i += PIECE_BYTES) {
		OPAQUE(i);
		found = look_at_piece(place, i);
		if (found != GO_ON)
			return found;
	}
	return RETURNS_LATER;
}

// How many words above the stack pointer the return address of a leaf is, plus 1; 0: not known.
// Inlined: the deepest chain of calls has just room for its frames in 512 bytes of stack (Linux 6.1).
static __always_inline int leaf_words_above(u32 place, int is_frameless)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	u64 word, target, size;
	int ahead;

	if (!walk || !read_user(&word, sizeof(word), walk->sp))
		return 0;
	target = called_from(place, word);
	if (target != NO_CALL) {
		size = walk->pc - target;
		ahead = look_ahead(place);
		if (ahead == RETURNS_SOON)
			return 1;
		if (is_frameless)
			return (target == CALL_ANYWHERE || size < FAR_BYTES) &&
			       (!size || ahead != FREES_STACK);
		return target != CALL_ANYWHERE && size < NEAR_BYTES &&
		       !has_set_up(place, target, size);
	}
	if (is_frameless || word != walk->fp || // or it was pushed
	    !read_user(&word, sizeof(word), walk->sp + sizeof(word)))
		return 0;
	target = called_from(place, word);
	size = walk->pc - target;
	if (target <= CALL_ANYWHERE || size >= NEAR_BYTES || has_set_up(place, target, size))
		return 0;
	return 2;
}

#endif
