// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Goes from a frame without a rule to its caller.
#ifndef WALK_GUESSES_H
#define WALK_GUESSES_H

#include "walk_arm64.h"
#include "walk_call.h"
#include "walk_leaf.h"
#include "walk_lookup.h"
#include "walk_steps.h"
#include "walk_switch.h"

#define SIGRETURN_BYTES 9

// Whether memory has the call of rt_sigreturn(2), which handlers return to and which has no rules
// in musl: mov $15, %rax; syscall.
static __always_inline bool is_sigreturn(u64 address)
{
	struct {
		u64 first;
		u8 last;
	} __attribute__((packed)) code;

	return read_user(&code, SIGRETURN_BYTES, address) && code.first == 0x0f0000000fc0c748ull &&
	       code.last == 0x05;
}

// Whether a frame without a rule is that of a signal, by the code that the handler returns to.
static __always_inline bool is_signal(struct walk *walk)
{
	if (arm64_code_bits)
		return is_arm64_signal(walk);
	return is_sigreturn(walk->pc) || is_sigreturn(walk->pc - 7) ||
	       (walk->is_exact && is_sigreturn(walk->pc - SIGRETURN_BYTES));
}

// Whether a function begins at a return address that no call left: GO_ON if not; or else how the
// walk ends. makecontext(3) begins a stack so.
static __always_inline int end_at_entry(struct walk *walk, u32 place)
{
	int err = find_rule(walk->mapping.exe, walk->pc - walk->mapping.bias);
	u32 number = err;
	struct rule *rule;

	if (err == -WALK_NOT_BUILT)
		return WALK_NOT_BUILT;
	if (err < 0)
		return GO_ON;
	rule = bpf_map_lookup_elem(&rules, &number);
	if (!rule || rule->kind == RULE_DEPTH)
		return GO_ON;
	err = check_call(place);
	if (err == WALK_READ_FAULT || err == GO_ON)
		return err;
	return WALK_COMPLETE;
}

// Goes to the caller of code without a rule, at an address that was read.
static __always_inline int leave(struct walk *walk, u32 place, u64 cfa, u64 fp, u64 caller)
{
	if (arm64_code_bits)
		caller &= arm64_code_bits;
	if (caller && find_mapping(place, caller - 1) != GO_ON)
		return WALK_NO_UNWIND_INFO;
	walk->sp = cfa;
	walk->fp = fp;
	walk->pc = caller;
	walk->is_exact = 0;
	if (caller)
		return GO_ON;
	return walks_frame_pointers ? WALK_COMPLETE : WALK_NO_CALLER;
}

// Follows the frame pointer, if it looks like one; `is_elsewhere`: of a frame on another stack.
__noinline int follow_frame_pointer(u32 place, int is_elsewhere)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	u64 saved[2];

	if (!walk)
		return WALK_NO_UNWIND_INFO;
	walk->guessed++;
	if (walk->is_fp_lost)
		return WALK_NO_UNWIND_INFO;
	if (!walk->fp) // the end of a chain; but of a register that no chain led to, any number
		return walks_frame_pointers || walk->guessed_at + 1 == walk->depth ?
			       WALK_COMPLETE :
			       WALK_NO_UNWIND_INFO;
	walk->guessed_at = walk->depth;
	if ((walk->fp < walk->sp && !is_elsewhere) || walk->fp & 7)
		return WALK_NO_UNWIND_INFO;
	if (!read_user(saved, sizeof(saved), walk->fp))
		return WALK_READ_FAULT;
	if (!saved[1] && !walks_frame_pointers) // no frame: an outermost one is named by 0
		return WALK_NO_UNWIND_INFO;
	return leave(walk, place, walk->fp + 16, saved[0], saved[1]);
}

static __always_inline int step_by_guess(u32 place)
{
	return follow_frame_pointer(place, false);
}

// Leaves a function that has taken `depth` bytes from the stack, with marks: Go's may have no frame.
__noinline int step_by_depth(u32 place, u32 depth)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	u32 is_interrupted = depth & DEPTH_INTERRUPTED;
	u64 caller, fp, at;
	int err;

	if (!walk)
		return WALK_NO_UNWIND_INFO;
	depth &= ~7;
	at = walk->sp + depth;
	if (arm64_code_bits) {
		caller = walk->lr;
		fp = walk->fp;
		if (depth && !read_user(&caller, sizeof(caller), walk->sp))
			return WALK_READ_FAULT;
		if (depth && fp == walk->sp - 8 && !read_user(&fp, sizeof(fp), fp))
			return WALK_READ_FAULT;
		return leave(walk, place, at, fp, caller);
	}
	if (!read_user(&caller, sizeof(caller), at))
		return WALK_READ_FAULT;
	fp = walk->fp;
	if (fp == at - 8 && !read_user(&fp, sizeof(fp), fp))
		return WALK_READ_FAULT;
	err = leave(walk, place, at + 8, fp, caller);
	walk->is_exact = is_interrupted;
	return err;
}

// Leaves a leaf that has no frame yet, none any more, or none at all. GO_ON; anything else: as for
// other frames.
__noinline int step_from_leaf(u32 place, int is_frameless)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	int words = leaf_words_above(place, is_frameless);
	u64 caller;

	if (!walk || words <= 0 ||
	    !read_user(&caller, sizeof(caller), walk->sp + (words - 1) * sizeof(caller)))
		return WALK_NO_UNWIND_INFO;
	walk->guessed++;
	return leave(walk, place, walk->sp + words * sizeof(caller), walk->fp, caller);
}

// Leaves a frame of code that has no rule; `depth` is that of its stack, below 0 if not known.
__noinline int step_without_rule(u32 place, int depth)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	int err;
	u32 at;

	if (!walk)
		return WALK_NO_UNWIND_INFO;
	if (!walk->mapping.exe && !(arm64_code_bits && is_signal(walk))) // the vDSO has no rules
		return step_by_guess(place);
	if (depth == DEPTH_OUTERMOST && !walk->is_exact)
		return WALK_COMPLETE;
	if (depth == DEPTH_ELSEWHERE && !walk->is_exact)
		return step_to_other_stack(place);
	if (depth == DEPTH_OUTERMOST || depth == DEPTH_ELSEWHERE)
		return WALK_NO_UNWIND_INFO;
	if (is_signal(walk))
		return step_from_signal(place);
	if (walk->is_exact) {
		if (arm64_code_bits && is_arm64_stub(walk->pc))
			return to_return_address(walk, walk->sp, walk->lr);
		if (depth >= 0 && depth & DEPTH_FRAME_ELSEWHERE &&
		    walk->fp != walk->sp + (depth & ~7) - 8)
			return WALK_NO_UNWIND_INFO; // on which stack is not known
		if (depth >= 0)
			return step_by_depth(place, depth);
		if (!arm64_code_bits && depth != DEPTH_UNKNOWN &&
		    step_from_leaf(place, depth == DEPTH_FRAMELESS) == GO_ON)
			return GO_ON;
	} else if (depth >= 0 && depth & DEPTH_FRAME_ELSEWHERE) {
		return follow_frame_pointer(place, true);
	} else if (depth >= 0 && !arm64_code_bits) {
		return step_by_depth(place, depth);
	} else {
		err = end_at_entry(walk, place);
		if (err == WALK_COMPLETE) {
			at = walk->depth - 1;
			OPAQUE(at);
			if (at < WALK_FRAMES)
				walk->frames[at]++;
		}
		if (err != GO_ON)
			return err;
	}
	if ((depth == DEPTH_FRAMELESS || depth == DEPTH_UNKNOWN) && !walks_frame_pointers)
		return WALK_NO_UNWIND_INFO;
	return step_by_guess(place);
}

#endif
