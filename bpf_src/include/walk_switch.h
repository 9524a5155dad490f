// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Goes from a function of Go's that changes stacks to its caller on the other stack.
//
// Neither a rule nor a frame pointer names the return address there: a word does that a call of the
// running function left, as far below the caller's frame as the caller has taken from the stack.
#ifndef WALK_SWITCH_H
#define WALK_SWITCH_H

#include "walk_call.h"
#include "walk_lookup.h"

#define SWITCH_BYTES 256 // of a function that changes stacks
// Where asmcgocall keeps the depth of the other stack, and behind it the goroutine: above its stack
// pointer (Go's src/runtime/asm_amd64.s, until 1.21 and from 1.22 on).
#define DEPTH_UNTIL_1_21 40
#define DEPTH_FROM_1_22 0
#define STACK_END 8 // in struct g

// The depth of the stack at an address of the file that the walk is in; negative: -enum walk_reason.
static __always_inline int depth_at(u32 place, u64 address)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	struct rule *rule;
	u32 number;
	int found;

	if (!walk)
		return -WALK_NO_UNWIND_INFO;
	found = find_rule(walk->mapping.exe, address - walk->mapping.bias);
	if (found < 0) {
		if (found == -WALK_NOT_BUILT)
			walk->lacking = address;
		return found;
	}
	number = found;
	rule = bpf_map_lookup_elem(&rules, &number);
	if (!rule || rule->kind != RULE_DEPTH)
		return -WALK_NO_UNWIND_INFO;
	return rule->cfa == DEPTH_ELSEWHERE ? 0 : rule->cfa;
}

// The depth of the caller's stack, if a call of the running function left a word: 8 or more. Or
// negative: -enum walk_reason.
__noinline int switch_depth(u32 place, u64 word)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	u64 code, target;
	int depth;

	if (!walk || word <= walk->mapping.start || word >= walk->mapping.end)
		return -WALK_NO_UNWIND_INFO;
	if (!read_user(&code, sizeof(code), word - sizeof(code)) || CODE(5) != 0xe8)
		return -WALK_NO_UNWIND_INFO;
	target = word + (long)((int)(code >> 32));
	if (target >= walk->pc || walk->pc - target > SWITCH_BYTES)
		return -WALK_NO_UNWIND_INFO;
	depth = depth_at(place, target);
	if (depth)
		return depth < 0 ? depth : -WALK_NO_UNWIND_INFO;
	depth = depth_at(place, word - 1);
	return depth < 0 || (depth && !(depth & 7)) ? depth : -WALK_NO_UNWIND_INFO;
}

// Goes to the caller by the address of its return address. GO_ON, or how the walk ends.
__noinline int enter_other_stack(u32 place, u64 at)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	int depth;
	u64 word;

	if (!walk || !read_user(&word, sizeof(word), at))
		return WALK_NO_UNWIND_INFO;
	depth = switch_depth(place, word);
	if (depth == -WALK_NOT_BUILT) { // user space builds it
		walk->pc = walk->lacking;
		walk->is_exact = 1;
	}
	if (depth <= 0)
		return depth ? -depth : WALK_NO_UNWIND_INFO;
	walk->guessed++;
	walk->guessed_at = walk->depth;
	walk->pc = word;
	walk->sp = at + sizeof(word);
	walk->fp = at + depth;
	walk->is_fp_lost = 0;
	return GO_ON;
}

// The address of the caller's return address, by what asmcgocall keeps at an address; 0: none. A
// thread without a goroutine, or on its own stack, has no g but the stack pointer.
static __always_inline u64 kept_address(u64 from)
{
	u64 kept[2], end;

	if (!read_user(kept, sizeof(kept), from))
		return 0;
	if (!kept[1])
		return kept[0];
	return read_user(&end, sizeof(end), kept[1] + STACK_END) ? end - kept[0] : 0;
}

#define PIECE_WORDS 8 // that one of two loops is for: the verifier looks at each loop by itself
#define IS_LACKING 1  // in an address: user space has not built the rules of the word there
#define SEVERAL 2     // instead of an address

// The address of the caller's return address in a piece of `walk->below`; or 0, SEVERAL, or with IS_LACKING.
__noinline u64 address_in_piece(u32 place, u32 start)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	u64 found = 0, word;
	int depth;

	if (!walk)
		return 0;
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < PIECE_WORDS; i++) {
		u32 at = start + i;

		OPAQUE(i);
		OPAQUE(at);
		if (at >= BELOW_WORDS)
			break;
		word = walk->below[at];
		if (word <= walk->mapping.start || word >= walk->mapping.end)
			continue;
		depth = switch_depth(place, word);
		if (depth == -WALK_NOT_BUILT)
			return (walk->fp - (BELOW_WORDS - at) * sizeof(word)) | IS_LACKING;
		if (depth < 0 || (u32)depth != (BELOW_WORDS - at) * sizeof(word))
			continue;
		if (found)
			return SEVERAL;
		found = walk->fp - depth;
	}
	return found;
}

// The address of the caller's return address below the frame that the frame pointer leads to; 0: none,
// or several. Old words of calls from the same place may be there.
static __always_inline u64 address_below_frame(u32 place, struct walk *walk)
{
	u64 found = 0, address;

	if (walk->is_fp_lost || walk->fp & 7 ||
	    !read_user(walk->below, sizeof(walk->below), walk->fp - sizeof(walk->below)))
		return 0;
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < BELOW_WORDS; i += PIECE_WORDS) {
		OPAQUE(i);
		address = address_in_piece(place, i);
		if (address & IS_LACKING)
			return address - IS_LACKING;
		if (address && (found || address == SEVERAL))
			return 0;
		if (address)
			found = address;
	}
	return found;
}

// Leaves a function that has changed stacks, by the frame that it called. GO_ON, or how the walk ends.
static __always_inline int step_to_other_stack(u32 place)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	int reason;

	if (!walk || arm64_code_bits)
		return WALK_NO_UNWIND_INFO;
	reason = enter_other_stack(place, kept_address(walk->sp + DEPTH_UNTIL_1_21));
	if (reason == WALK_NO_UNWIND_INFO)
		reason = enter_other_stack(place, kept_address(walk->sp + DEPTH_FROM_1_22));
	if (reason == WALK_NO_UNWIND_INFO)
		reason = enter_other_stack(place, address_below_frame(place, walk));
	return reason;
}

#endif
