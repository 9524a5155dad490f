// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Steps of 32-bit code on x86_64, by the rules of its files: words have 4 bytes.
#ifndef WALK_I386_H
#define WALK_I386_H

#include "walk_call.h"
#include "walk_lookup.h"

// struct sigcontext_32 (arch/x86/include/uapi/asm/sigcontext.h): where bp, sp and ip are.
#define I386_CONTEXT_BP 24
#define I386_CONTEXT_SP 28
#define I386_CONTEXT_IP 56

static __always_inline bool read_i386_word(u64 *to, u64 address)
{
	u32 word;

	if (!read_user(&word, sizeof(word), (u32)address))
		return false;
	*to = word;
	return true;
}

// Leaves a frame that the kernel built for a signal handler.
static __always_inline int step_from_i386_signal(struct walk *walk)
{
	u64 context = walk->sp + walk->rule.cfa, fp, sp, pc;

	if (!read_i386_word(&fp, context + I386_CONTEXT_BP) ||
	    !read_i386_word(&sp, context + I386_CONTEXT_SP) ||
	    !read_i386_word(&pc, context + I386_CONTEXT_IP))
		return WALK_READ_FAULT;
	walk->fp = fp;
	walk->sp = sp;
	walk->pc = pc;
	walk->is_fp_lost = 0;
	walk->is_exact = 1;
	return GO_ON;
}

// The CFA of the frame's rule: GO_ON, or how the walk ends without it.
static __always_inline int i386_cfa(struct walk *walk, u64 *cfa)
{
	struct rule *rule = &walk->rule;
	u64 base = walk->sp;

	if (rule->kind == RULE_FP || rule->kind == RULE_DEREF_FP) {
		if (walk->is_fp_lost)
			return WALK_RULE_UNSUPPORTED;
		base = walk->fp;
	}
	switch (rule->kind) {
	case RULE_SP:
	case RULE_FP:
		*cfa = (u32)(base + rule->cfa);
		return GO_ON;
	case RULE_PLT:
		*cfa = (u32)(base + 4 + (((walk->pc & 15) >= (u64)rule->cfa) << 2));
		return GO_ON;
	case RULE_DEREF_FP:
	case RULE_DEREF_SP:
		if (!read_i386_word(cfa, base + (short)rule->cfa))
			return WALK_READ_FAULT;
		*cfa = (u32)(*cfa + (rule->cfa >> 16));
		return GO_ON;
	default:
		return WALK_RULE_UNSUPPORTED;
	}
}

// To the caller, by the frame's rule: as step_by_rule().
__noinline int step_by_i386_rule(u32 place)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	u64 cfa, fp, caller;
	struct rule *rule;
	bool is_saved;
	int err;

	if (!walk)
		return WALK_RULE_UNSUPPORTED;
	rule = &walk->rule;
	err = i386_cfa(walk, &cfa);
	if (err != GO_ON)
		return err;
	if (cfa <= walk->sp)
		return WALK_RULE_UNSUPPORTED;
	fp = walk->fp;
	is_saved = (rule->flags & FP_SAVED) && cfa + rule->saved >= walk->sp;
	if (!read_i386_word(&caller, cfa - 4) ||
	    (is_saved && !read_i386_word(&fp, cfa + rule->saved)))
		return WALK_READ_FAULT;
	if (rule->flags & FP_AT_FP) {
		if (walk->is_fp_lost)
			return WALK_RULE_UNSUPPORTED;
		if (!read_i386_word(&fp, walk->fp + rule->saved))
			return WALK_READ_FAULT;
	}
	if (is_saved)
		walk->is_fp_lost = 0;
	else if (rule->flags & FP_UNDEFINED)
		walk->is_fp_lost = 1;
	walk->fp = fp;
	walk->sp = cfa;
	walk->pc = caller;
	walk->is_exact = 0;
	return caller ? GO_ON : WALK_NO_CALLER;
}

// As step(), in unwind_walk.h.
__noinline int step_of_i386(u32 place)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	int found, err;
	u32 depth;

	if (!walk)
		return WALK_RULE_UNSUPPORTED;
	found = find_rule_of_frame(place);
	depth = walk->depth;
	OPAQUE(depth);
	if (depth >= WALK_FRAMES)
		return WALK_TOO_DEEP;
	if (found == WALK_UNKNOWN_MAPPING && depth)
		return WALK_UNKNOWN_MAPPING;
	walk->frames[depth] = walk->pc + (depth && walk->is_exact);
	walk->depth = depth + 1;
	if (found != GO_ON)
		return found;
	if (walk->rule.kind == RULE_SIGNAL)
		return step_from_i386_signal(walk);
	if (!walk->is_exact && !walk->is_called) {
		err = check_call(place);
		if (err != GO_ON)
			return err;
		remember_rule(walk, place);
	}
	return walk->rule.kind == RULE_END ? WALK_COMPLETE : step_by_i386_rule(place);
}

// To the caller by the frame pointer, in code without rules. False: there is none.
__noinline int step_by_i386_frame(u32 place)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	u32 saved[2], depth;

	if (!walk || walk->fp < walk->sp || walk->fp & 3)
		return false;
	depth = walk->depth;
	OPAQUE(depth);
	if (depth >= WALK_FRAMES || !read_user(saved, sizeof(saved), walk->fp) || !saved[1])
		return false;
	walk->frames[depth] = saved[1];
	walk->depth = depth + 1;
	walk->guessed++;
	walk->sp = walk->fp + sizeof(saved);
	walk->fp = saved[0];
	return true;
}

#endif
