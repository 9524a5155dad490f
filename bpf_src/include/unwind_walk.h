// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Walks a user stack by the tables of unwind_tables.h, on x86_64 and arm64.
//
// It gives up, and says why, wherever purebpf/unwind/unwinder.py would have to do more than follow
// a packed rule; what it calls complete is what that gives for the same registers and memory.
//
// Each part is a global function of scalars, which the verifier checks once and by itself.
#ifndef UNWIND_WALK_H
#define UNWIND_WALK_H

#include "process_identity.h"
#include "v8_steps.h"
#include "walk_call.h"
#include "walk_guesses.h"
#include "walk_i386.h"
#include "walk_lookup.h"
#include "walk_steps.h"
#include "walk_uprobes.h"

#define STRIDE 8 // frames that one of two loops is for

__noinline int step(u32 place)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	int found, err;
	u32 depth;

	if (!walk)
		return WALK_RULE_UNSUPPORTED;
	depth = walk->depth;
	OPAQUE(depth);
	if (depth >= WALK_FRAMES)
		return WALK_TOO_DEEP;
	if (!arm64_code_bits && walk->is_32_bits)
		return step_of_i386(place);
	if (java && !depth)
		begin_java(place);
	if (java && is_java(place, walk->pc)) {
		walk->frames[depth] = walk->pc;
		walk->depth = depth + 1;
		return step_java(place);
	}
	found = walks_frame_pointers && depth ? GO_ON : find_rule_of_frame(place);
	if ((found == WALK_UNKNOWN_MAPPING || found == WALK_NO_UNWIND_INFO) && leave_uprobe(place))
		return GO_ON;
	if (found == WALK_UNKNOWN_MAPPING && depth) // no frame: its address may be anything
		return WALK_UNKNOWN_MAPPING;
	walk->frames[depth] = walk->pc + (depth && walk->is_exact);
	walk->depth = depth + 1;
	if (walks_frame_pointers && depth)
		return step_by_guess(place);
	if (java && is_v8(walk, place, found))
		return step_v8(place);
	if (found == WALK_NO_UNWIND_INFO)
		return step_without_rule(place, -1);
	if (found != GO_ON)
		return found;
	if (walk->rule.kind == RULE_SIGNAL)
		return step_from_signal(place);
	if (walk->rule.kind == RULE_DEPTH)
		return step_without_rule(place, walk->rule.cfa);
	if (!walk->is_exact && !walk->is_called) {
		err = check_call(place);
		if (err != GO_ON)
			return err;
		remember_rule(walk, place);
	}
	if (walk->rule.kind == RULE_END)
		return WALK_COMPLETE;
	return step_by_rule(place);
}

// A number of steps: fewer for the verifier to look at than if all were in one loop.
__noinline int take_steps(u32 place)
{
	int reason = GO_ON;

#pragma clang loop unroll(disable)
	for (u32 taken = 0; taken < STRIDE; taken++) {
		OPAQUE(taken);
		reason = step(place);
		if (reason != GO_ON)
			break;
	}
	return reason;
}

__noinline int take_i386_frames(u32 place)
{
	int more = 1;

#pragma clang loop unroll(disable)
	for (u32 taken = 0; taken < STRIDE; taken++) {
		OPAQUE(taken);
		more = step_by_i386_frame(place);
		if (!more)
			break;
	}
	return more;
}

// Follows frame pointers of 32-bit code to their end. Compilers use the register for other numbers,
// so that this may lead past callers.
static __always_inline void follow_i386_frames(struct walk *walk, u32 place)
{
	if (walk->is_fp_lost || arm64_code_bits)
		walk->fp = 0;
#pragma clang loop unroll(disable)
	for (u32 taken = 0; taken < WALK_FRAMES; taken += STRIDE) {
		OPAQUE(taken);
		if (!take_i386_frames(place))
			break;
	}
	walk->reason = WALK_COMPAT32;
}

static __always_inline void begin_walk(struct walk *walk, struct registers *from)
{
	walk->pc = from->ip;
	walk->sp = from->sp;
	walk->fp = from->bp;
	walk->lr = from->bx;
	walk->ax = from->ax;
	walk->bx = from->bx;
	walk->dx = from->dx;
	walk->r13 = from->r13;
	walk->mapping.start = walk->mapping.end = 0;
	walk->is_exact = 1;
	walk->is_fp_lost = 0;
	walk->guessed = 0;
	walk->guessed_at = ~0u - 1;
	walk->return_probes = 0;
	walk->has_more_python = 0;
	walk->depth = 1;
	walk->frames[0] = from->ip;
	walk->is_32_bits = from->cs != USER_CS;
	if (walk->is_32_bits) {
		walk->sp = (u32)walk->sp;
		walk->fp = (u32)walk->fp;
	}
}

// Walks the stack of the current task from its user registers; `process` is its tgid in the
// initial pid namespace. The walk at `place` has what came of it.
static __always_inline void walk_stack(struct walk *walk, u32 place, struct registers *from,
				       u32 process, u64 identity)
{
	struct process_mappings *known = bpf_map_lookup_elem(&procs, &process);
	int reason = GO_ON;

	begin_walk(walk, from);
	if (walk->is_32_bits && (arm64_code_bits || walks_frame_pointers)) {
		follow_i386_frames(walk, place);
		return;
	}
	walk->process = process;
	walk->identity = identity;
	walk->depth = 0;
	if (known && is_of(known, identity)) {
		walk->list = known->list;
		walk->count = known->count;
		walk->version = known->version;
#ifdef LIVE_MAPPINGS
	} else if (java || finds_vma) {
#else
	} else if (java) { // its JVM may be known: user space goes on behind the Java frames
#endif
		walk->list = walk->count = walk->version = 0;
	} else {
		walk->depth = 1;
		walk->reason = WALK_PROCESS_UNKNOWN;
		return;
	}
#pragma clang loop unroll(disable)
	for (u32 taken = 0; taken <= WALK_FRAMES; taken += STRIDE) {
		OPAQUE(taken);
		reason = take_steps(place);
		if (reason != GO_ON)
			break;
	}
	if (reason == GO_ON)
		reason = WALK_TOO_DEEP;
	else if (reason == WALK_COMPLETE && walk->guessed)
		reason = WALK_FP_GUESS;
	else if (reason == WALK_UNKNOWN_MAPPING && !walk->version)
		reason = WALK_PROCESS_UNKNOWN;
#ifdef LIVE_MAPPINGS
	else if ((reason == WALK_NO_UNWIND_INFO || reason == WALK_NO_CALLER) && !walk->version)
		reason = WALK_PROCESS_UNKNOWN; // guesses need its mappings
#endif
	walk->reason = reason;
	from->ip = walk->frames[0]; // not that of a uprobe's copy
	if (walk->is_32_bits && reason == WALK_NO_UNWIND_INFO)
		follow_i386_frames(walk, place);
}

// Whether user space may do better with a copy of the stack.
static __always_inline bool copy_helps(u32 reason)
{
	return reason == WALK_UNKNOWN_MAPPING || reason == WALK_RULE_UNSUPPORTED ||
	       reason == WALK_READ_FAULT || reason == WALK_PROCESS_UNKNOWN ||
	       reason == WALK_NOT_BUILT;
}

#endif
