// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Goes from a frame to its caller where a rule tells how.
#ifndef WALK_STEPS_H
#define WALK_STEPS_H

#include "walk.h"
#include "walk_arm64.h"

// Leaves a frame that the kernel built for a signal handler: struct rt_sigframe without its first
// word, which the handler's return popped (arch/x86/include/asm/sigframe.h). In it is struct
// sigcontext_64: r8 to r15, di, si, bp, bx, dx, ax, cx, sp, ip.
#define SIGNAL_CONTEXT 40

__noinline int step_from_signal(u32 place)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	u64 fp, top[2]; // the rest has no use, and would take a fourth of the stack

	if (walk && arm64_code_bits)
		return step_from_arm64_signal(walk);
	if (!walk || !read_user(&fp, sizeof(fp), walk->sp + SIGNAL_CONTEXT + 10 * sizeof(fp)) ||
	    !read_user(top, sizeof(top), walk->sp + SIGNAL_CONTEXT + 15 * sizeof(fp)))
		return WALK_READ_FAULT;
	walk->fp = fp;
	walk->sp = top[0];
	walk->pc = top[1];
	walk->is_fp_lost = 0;
	walk->is_exact = 1;
	return GO_ON;
}

// To the caller, by the frame's rule.
__noinline int step_by_rule(u32 place)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	struct rule *rule;
	u64 cfa, fp, top[2];
	bool is_saved;

	if (!walk)
		return WALK_RULE_UNSUPPORTED;
	rule = &walk->rule;
	if (walk->is_fp_lost && (rule->kind == RULE_FP || rule->kind == RULE_DEREF_FP))
		return WALK_RULE_UNSUPPORTED;
	switch (rule->kind) {
	case RULE_SP:
		cfa = walk->sp + rule->cfa;
		break;
	case RULE_FP:
		cfa = walk->fp + rule->cfa;
		break;
	case RULE_PLT:
		cfa = walk->sp + 8 + (((walk->pc & 15) >= (u64)rule->cfa) << 3);
		break;
	case RULE_DEREF_FP:
	case RULE_DEREF_SP:
		fp = rule->kind == RULE_DEREF_FP ? walk->fp : walk->sp;
		if (!read_user(&cfa, sizeof(cfa), fp + (short)rule->cfa))
			return WALK_READ_FAULT;
		cfa += rule->cfa >> 16;
		break;
	default:
		return WALK_RULE_UNSUPPORTED;
	}
	if (arm64_code_bits)
		return step_to_arm64_caller(walk, rule, cfa);
	if (cfa <= walk->sp)
		return WALK_RULE_UNSUPPORTED;
	fp = walk->fp;
	// GCC says "saved" until the end of an epilogue: a slot below sp is popped already.
	is_saved = (rule->flags & FP_SAVED) && cfa + rule->saved >= walk->sp;
	if (is_saved && rule->saved == -16) { // as nearly always: one read for both
		if (!read_user(top, sizeof(top), cfa - 16))
			return WALK_READ_FAULT;
		fp = top[0];
	} else {
		if (!read_user(&top[1], sizeof(top[1]), cfa - 8))
			return WALK_READ_FAULT;
		if (is_saved && !read_user(&fp, sizeof(fp), cfa + rule->saved))
			return WALK_READ_FAULT;
	}
	if (rule->flags & FP_AT_FP) {
		if (walk->is_fp_lost)
			return WALK_RULE_UNSUPPORTED;
		if (!read_user(&fp, sizeof(fp), walk->fp + rule->saved))
			return WALK_READ_FAULT;
	}
	if (is_saved)
		walk->is_fp_lost = 0;
	else if (rule->flags & FP_UNDEFINED)
		walk->is_fp_lost = 1;
	walk->fp = fp;
	walk->sp = cfa;
	walk->pc = top[1];
	walk->is_exact = 0;
	return walk->pc ? GO_ON : WALK_NO_CALLER;
}

#endif
