// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Differences of arm64 in a walk: purebpf/unwind/packed_rule.py has the flags of rules,
// purebpf/unwind/machine.py the code of calls, stubs and signals.
#ifndef WALK_ARM64_H
#define WALK_ARM64_H

#include "walk.h"

// bl; blr, and blraa and its like
static __always_inline bool is_arm64_call(u32 word)
{
	return word >> 26 == 0x25 || (word & 0xfefff000) == 0xd63f0000;
}

static __always_inline int to_return_address(struct walk *walk, u64 cfa, u64 address)
{
	walk->sp = cfa;
	walk->pc = address & arm64_code_bits;
	walk->is_exact = 0;
	return walk->pc ? GO_ON : WALK_NO_CALLER;
}

// To the caller, by a rule. Only a leaf still has its return address in x30, and may have no frame.
static __always_inline int step_to_arm64_caller(struct walk *walk, struct rule *rule, u64 cfa)
{
	u64 at = cfa + rule->saved, top[2];
	bool is_leaf = rule->flags & RA_IN_REGISTER;

	if (is_leaf ? !walk->is_exact || cfa < walk->sp : cfa <= walk->sp || at < walk->sp)
		return WALK_RULE_UNSUPPORTED;
	if (rule->flags & RA_PAIR) {
		if (!read_user(top, sizeof(top), at))
			return WALK_READ_FAULT;
		walk->fp = top[0];
		walk->is_fp_lost = 0;
		return to_return_address(walk, cfa, top[1]);
	}
	if (rule->flags & RA_ALONE) {
		if (!read_user(top, sizeof(top[0]), at))
			return WALK_READ_FAULT;
		return to_return_address(walk, cfa, top[0]);
	}
	if (!is_leaf || rule->flags & FP_AT_FP)
		return WALK_RULE_UNSUPPORTED;
	if (rule->flags & FP_SAVED && at >= walk->sp) {
		if (!read_user(top, sizeof(top[0]), at))
			return WALK_READ_FAULT;
		walk->fp = top[0];
	} else if (rule->flags & FP_UNDEFINED) {
		walk->is_fp_lost = 1;
	}
	return to_return_address(walk, cfa, walk->lr);
}

// Where the frame that the kernel built for a handler has x29, x30, sp and pc: struct rt_sigframe of
// arch/arm64/kernel/signal.c, and struct sigcontext.
#define ARM64_SIGNAL_CONTEXT (312 + 29 * 8)

static __always_inline int step_from_arm64_signal(struct walk *walk)
{
	u64 saved[4];

	if (!read_user(saved, sizeof(saved), walk->sp + ARM64_SIGNAL_CONTEXT))
		return WALK_READ_FAULT;
	walk->fp = saved[0];
	walk->lr = saved[1];
	walk->sp = saved[2];
	walk->pc = saved[3];
	walk->is_fp_lost = 0;
	walk->is_exact = 1;
	return GO_ON;
}

static __always_inline bool is_arm64_sigreturn(u64 address)
{
	u64 code;

	// mov x8, #139; svc #0
	return read_user(&code, sizeof(code), address) && code == 0xd4000001d2801168ull;
}

static __always_inline bool is_arm64_signal(struct walk *walk)
{
	return is_arm64_sigreturn(walk->pc) || is_arm64_sigreturn(walk->pc - 4) ||
	       (walk->is_exact && is_arm64_sigreturn(walk->pc - 8));
}

#define STUB_WORDS 10 // half of them before the address
#define BTI_C 0xd503245f
#define AUTIA1716 0xd503219f
#define BR_X17 0xd61f0220

// Whether code is in a stub of a PLT, which has no rules and changes neither sp nor x30: perhaps
// bti c; adrp x16; ldr x17, [x16]; add x16, x16; perhaps autia1716; br x17.
static __always_inline bool is_arm64_stub(u64 address)
{
	u32 words[STUB_WORDS];

	if (!read_user(words, sizeof(words), address - sizeof(words) / 2))
		return false;
#pragma clang loop unroll(full)
	for (u32 end = STUB_WORDS / 2; end < STUB_WORDS; end++) {
		bool is_signed = words[end - 1] == AUTIA1716;
		u32 add = is_signed ? words[end - 2] : words[end - 1];
		u32 ldr = is_signed ? words[end - 3] : words[end - 2];
		u32 adrp = is_signed ? words[end - 4] : words[end - 3];
		u32 first = end - 3 - is_signed; // of its words

		if (words[end] == BR_X17 && (add & 0xffc003ff) == 0x91000210 &&
		    (ldr & 0xffc003ff) == 0xf9400211 && (adrp & 0x9f00001f) == 0x90000010)
			return first <= STUB_WORDS / 2 + (words[STUB_WORDS / 2] == BTI_C);
	}
	return false;
}

#endif
