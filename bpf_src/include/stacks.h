// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Stacks, each kept once and named by a number.
//
// They are identified by their whole content: a 64-bit hash picks the slot, and a full compare
// decides. See docs/design/0001-stack-identity.md.
#ifndef STACKS_H
#define STACKS_H

#include "purebpf.h"

#define MAX_DEPTH 127 // frames; the default of kernel.perf_event_max_stack
#define PROBES 8      // slots tried for a stack whose hash is taken by another one

// Programs that may interrupt one another on a CPU each have a place for the stack they walk.
#ifndef PLACES
#define PLACES 1
#endif

// Stack ids below FIRST_STACK are no keys of `stacks`.
enum stack_id {
	STACK_NONE = 0,	       // nothing there: a kernel thread, a sample in user mode, -U, -K
	STACK_UNAVAILABLE = 1, // the kernel could not walk it
	STACK_LOST = 2,	       // the table had no place for it
	STACK_SENT = 3,	       // user space has a copy, and counts the sample: user_stacks.h
	FIRST_STACK = 16,
};

#define KERNEL_BIT (1ULL << 63)	  // set in the ids of kernel stacks, clear in those of user stacks
#define FINISHED_BIT (1ULL << 62) // user space gives ids with it to stacks that it finished
#define HASH_MASK (FINISHED_BIT - 1)

// How a user stack ended is part of what it is: a cut stack is another one than the whole one with
// the same addresses. Kernel stacks have 0 there.
struct stack {
	u32 depth;
	__u16 reason; // purebpf/unwind/reason.py
	// Frames that followed frame pointers for lack of a rule. In stacks with the reason
	// FRAME_POINTERS it has a bit for each word behind the frames: user_stacks.h.
	__u16 guessed;
	u64 addresses[MAX_DEPTH]; // leaf first; zero behind `depth`
};

#define FRAME_POINTERS 18 // `reason` of what bpf_get_stack walked

#define WORDS (sizeof(struct stack) / sizeof(u64)) // 128: all but the addresses is the first
#define CHUNK 8

// In stacks.
struct stack_stats {
	u64 stacks_full;	// `stacks` had no place
	u64 stacks_busy;	// `stacks` was locked by what the program interrupted
	u64 stacks_crowded;	// all PROBES slots were taken by other stacks
	u64 stacks_displaced;	// kept in a later slot than their hash says
	u64 user_truncated;	// deeper than max_depth
	u64 kernel_truncated;	//
	u64 user_unavailable;	// bpf_get_stack failed
	u64 kernel_unavailable; //
};

CONFIG bool user_stacks = true;
CONFIG bool kernel_stacks = true;
CONFIG u32 max_depth = MAX_DEPTH; // min(MAX_DEPTH, kernel.perf_event_max_stack)
CONFIG u64 hash_mask = ~0ULL;	  // for tests: bits left of the hash, so that collisions happen

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct stack);
} stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PLACES);
	__type(key, u32);
	__type(value, struct stack);
} scratch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PLACES);
	__type(key, u32);
	__type(value, struct stack_stats);
} stack_stats SEC(".maps");

// The loops live in global functions of scalars: each is verified once, by itself, and its paths
// do not multiply those of its callers (Linux 5.6, commit 51c39bb1d5d1). They take a struct stack
// as chunks of words, as many as `depth` reaches into: the verifier walks through each turn of a
// loop, and a turn for each frame would triple what it has to look at. Words behind the depth are
// zero (bpf_get_stack clears them), and `depth` itself is in the first one.

// 64-bit hash of the stack in a place of `scratch`: a multiplication for each word, which carries
// what it says to higher bits, and a fold back after four.
__noinline u64 hash_scratch(u32 place, u32 depth)
{
	u64 hash = 0x9e3779b97f4a7c15ULL;
	u64 *mine = bpf_map_lookup_elem(&scratch, &place);

	if (!mine)
		return 0;
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < WORDS; i += CHUNK) {
		u64 *words = mine;

		OPAQUE(i);
		if (i > WORDS - CHUNK || i > depth)
			break;
		words += i;
		OPAQUE(words);
#pragma clang loop unroll(full)
		for (u32 j = 0; j < CHUNK; j++) {
			hash = (hash ^ words[j]) * 0xff51afd7ed558ccdULL;
			if (j % 4 == 3)
				hash ^= hash >> 32;
		}
	}
	return hash;
}

// Whether the stack in `scratch` is the one stored under `id`.
__noinline int scratch_equals(u32 place, u64 id, u32 depth)
{
	u64 *mine = bpf_map_lookup_elem(&scratch, &place);
	u64 *theirs = bpf_map_lookup_elem(&stacks, &id);

	if (!mine || !theirs)
		return 0;
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < WORDS; i += CHUNK) {
		u64 *left = mine, *right = theirs;
		u64 different = 0;

		OPAQUE(i);
		if (i > WORDS - CHUNK || i > depth)
			break;
		left += i;
		right += i;
		OPAQUE(left);
		OPAQUE(right);
#pragma clang loop unroll(full)
		for (u32 j = 0; j < CHUNK; j++)
			different |= left[j] ^ right[j];
		if (different)
			return 0;
	}
	return 1;
}

// What became of the stack in `scratch` under an id; below 0: there was no place.
enum interned {
	OTHER_THERE = 0, // the id is another stack's
	KNOWN,
	ADDED,
};

// Keeps the stack in `scratch` under an id, if no other one has it: enum interned.
//
// Errors are kept in an int: an update that the verifier inlines left the upper half of the
// register clear before Linux 6.4 (commit d7ba4cc900bf, "bpf: return long from bpf_map_ops funcs").
// Two CPUs that insert the same stack at once meet at the same slot: the second gets EEXIST and
// compares.
__noinline int intern_at(u32 place, u64 id)
{
	struct stack *mine = bpf_map_lookup_elem(&scratch, &place);
	int err;

	if (!mine)
		return -ENOMEM;
	if (!bpf_map_lookup_elem(&stacks, &id)) {
		err = bpf_map_update_elem(&stacks, &id, mine, BPF_NOEXIST);
		if (!err)
			return ADDED;
		if (err != -EEXIST)
			return err;
	}
	return scratch_equals(place, id, mine->depth) ? KNOWN : OTHER_THERE;
}

#ifdef STACK_OWNERS
#include "pid_namespace.h"

#define OWNER_TAG (0xfffULL << 48) // no address of a user, and no Python frame, has these bits
#define OWNED_TOO_DEEP 7	   // WALK_TOO_DEEP of unwind_tables.h

// Adds whose stack it is behind the addresses, so that a number says whose it is, too: its tgid in the
// namespace that numbers tasks. A stack that fills all of its room loses its outermost address, and
// says so.
static __always_inline void add_owner(struct stack *mine)
{
	u32 depth = mine->depth, tgid, tid;

	own_numbers(bpf_get_current_pid_tgid(), true, &tgid, &tid);
	if (depth >= MAX_DEPTH && mine->reason == FRAME_POINTERS) {
		depth = MAX_DEPTH - (mine->guessed & 1) - (mine->guessed >> 1);
		mine->guessed = 0;
	} else if (depth >= MAX_DEPTH) {
		mine->reason = OWNED_TOO_DEEP;
	}
	OPAQUE(depth);
	if (depth >= MAX_DEPTH)
		depth = MAX_DEPTH - 1;
	mine->addresses[depth] = OWNER_TAG | tgid;
	mine->depth = depth + 1;
}
#endif

// Finds or makes the entry of the stack in `scratch`; returns its id, or STACK_LOST.
// Entries are never removed while the program runs, so a search that starts at the hash and ends
// at the first free slot cannot miss an entry made earlier.
__noinline u64 intern_scratch(u32 place, u64 kind)
{
	struct stack *mine = bpf_map_lookup_elem(&scratch, &place);
	struct stack_stats *st = bpf_map_lookup_elem(&stack_stats, &place);
	u64 hash;

	if (!mine || !st)
		return STACK_LOST;
#ifdef STACK_OWNERS
	if (!kind)
		add_owner(mine);
#endif
	hash = hash_scratch(place, mine->depth) & hash_mask & HASH_MASK;
	if (hash < FIRST_STACK)
		hash += FIRST_STACK;
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < PROBES; i++) {
		u64 id = ((hash + i) & HASH_MASK) | kind;
		int interned = intern_at(place, id);

		if (interned > OTHER_THERE) {
			if (i && interned == ADDED)
				st->stacks_displaced++;
			return id;
		}
		if (interned < 0) {
			if (interned == -EBUSY)
				st->stacks_busy++;
			else
				st->stacks_full++;
			return STACK_LOST;
		}
	}
	st->stacks_crowded++;
	return STACK_LOST;
}

// The id of the stack of `size` bytes that a helper left in `scratch`; below 0: its error. Behind it
// are words for each bit of `words`.
static __always_inline u64 keep(u32 place, u64 kind, long size, u32 words)
{
	struct stack *mine = bpf_map_lookup_elem(&scratch, &place);
	struct stack_stats *st = bpf_map_lookup_elem(&stack_stats, &place);

	if (!mine || !st)
		return STACK_LOST;
	if (size < 0) {
		if (kind)
			st->kernel_unavailable++;
		else
			st->user_unavailable++;
		return STACK_UNAVAILABLE;
	}
	mine->depth = size / sizeof(u64);
	mine->reason = kind ? 0 : FRAME_POINTERS;
	mine->guessed = words;
	if (!mine->depth)
		return STACK_NONE;
	if (mine->depth >= max_depth) {
		if (kind)
			st->kernel_truncated++;
		else
			st->user_truncated++;
	}
	mine->depth += (words & 1) + (words >> 1);
	return intern_scratch(place, kind);
}

// Walks the current task's stack of a kind, 0 (user) or KERNEL_BIT, and returns its id.
static __always_inline u64 walk(void *ctx, u32 place, u64 kind)
{
	struct stack *mine = bpf_map_lookup_elem(&scratch, &place);

	if (!mine)
		return STACK_LOST;
	return keep(place, kind,
		    bpf_get_stack(ctx, mine->addresses, sizeof(mine->addresses),
				  kind ? 0 : BPF_F_USER_STACK),
		    0);
}

#endif
