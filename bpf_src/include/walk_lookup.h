// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Looks up the mapping of an address and the rule of a frame in the tables of unwind_tables.h.
#ifndef WALK_LOOKUP_H
#define WALK_LOOKUP_H

#include "walk.h"
#ifdef LIVE_MAPPINGS
#include "live_mappings.h"
#endif

#define NO_RULE 0	 // number of a rule, of each file
#define MAPPING_STEPS 16 // for 32,768 mappings, and one to see that it is found
#define ROW_STEPS 12	 // for 1,025 rows
#define KNOWN_RULES 512	 // that a CPU remembers

// The rule of a return address. It is the same for as long as a process has these mappings: no number
// of mappings is given out again, windows that are built stay, and so does the memory of rules while
// a list names their file.
struct known_rule {
	u64 pc;
	u32 version; // of the mappings; 0: none
	u32 unused;
	struct rule rule;
};

struct known_rules {
	struct known_rule by_address[KNOWN_RULES];
};

// What a walk looked up lately: the next sample of a thread returns to most of the same addresses.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, WALK_PLACES);
	__type(key, u32);
	__type(value, struct known_rules);
} known_rules SEC(".maps");

// One step of a binary search: what is looked for is in the lower half if `is_below` is -1, in the
// upper one if it is 0. No branch: the verifier would follow both at each step.
static __always_inline void halve(u32 *low, u32 *high, u32 middle, int is_below)
{
	*low ^= (*low ^ middle) & ~is_below;
	*high ^= (*high ^ middle) & is_below;
}

// Puts the mapping of an address into the walk.
__noinline int find_mapping(u32 place, u64 address)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	u32 low = 0, high, *words, at;
	struct code_mapping *found;

	if (!walk)
		return WALK_UNKNOWN_MAPPING;
	high = walk->count;
	words = shard_words(walk->list);
	if (!words || !high)
		return WALK_UNKNOWN_MAPPING;
#pragma clang loop unroll(disable)
	for (u32 step = 0; step < MAPPING_STEPS; step++) {
		u32 middle = (low + high) >> 1;
		long behind;

		OPAQUE(step);
		if (high - low <= 1)
			break;
		at = (walk->list + middle * MAPPING_WORDS) & SHARD_MASK & ~(MAPPING_WORDS - 1);
		OPAQUE(at);
		if (at > SHARD_WORDS - MAPPING_WORDS)
			return WALK_UNKNOWN_MAPPING;
		found = (void *)&words[at];
		behind = (address >> 1) - (found->start >> 1); // [vsyscall] has the top bit
		OPAQUE(behind);
		halve(&low, &high, middle, behind >> 63);
	}
	at = (walk->list + low * MAPPING_WORDS) & SHARD_MASK & ~(MAPPING_WORDS - 1);
	OPAQUE(at);
	if (at > SHARD_WORDS - MAPPING_WORDS)
		return WALK_UNKNOWN_MAPPING;
	found = (void *)&words[at];
	if (address < found->start || address >= found->end)
		return WALK_UNKNOWN_MAPPING;
	walk->mapping = *found;
	return GO_ON;
}

// The number of the rule that a file has for one of its addresses; negative: -enum walk_reason.
__noinline int find_rule(u32 number, u64 address)
{
	struct exe *exe = bpf_map_lookup_elem(&exes, &number);
	u32 *words, block, low, high, at, id, offset;
	u64 window;

	if (!exe || !number)
		return -WALK_NO_UNWIND_INFO;
	window = (address >> WINDOW_BITS) - exe->first;
	if (window >= exe->windows)
		return -WALK_NO_UNWIND_INFO;
	block = exe->index;
	if (!block)
		return -WALK_NOT_BUILT;
	block += (u32)window;
	words = shard_words(block);
	at = block & SHARD_MASK;
	OPAQUE(at);
	if (!words || at >= SHARD_WORDS)
		return -WALK_NOT_BUILT;
	block = *(volatile u32 *)&words[at];
	if (block == WINDOW_NOT_BUILT)
		return -WALK_NOT_BUILT;
	words = shard_words(block);
	at = block & SHARD_MASK;
	OPAQUE(at);
	if (!words || at >= SHARD_WORDS)
		return -WALK_NOT_BUILT;
	low = (block & SHARD_MASK) + 1;
	high = low + words[at];
	offset = address & ((1 << WINDOW_BITS) - 1);
#pragma clang loop unroll(disable)
	for (u32 step = 0; step < ROW_STEPS; step++) {
		u32 middle = (low + high) >> 1;
		int behind;

		OPAQUE(step);
		if (high - low <= 1)
			break;
		at = middle & SHARD_MASK;
		OPAQUE(at);
		if (at >= SHARD_WORDS)
			return -WALK_NOT_BUILT;
		behind = offset - (words[at] & ((1 << OFFSET_BITS) - 1));
		OPAQUE(behind);
		halve(&low, &high, middle, behind >> 31);
	}
	at = low & SHARD_MASK;
	OPAQUE(at);
	if (at >= SHARD_WORDS)
		return -WALK_NOT_BUILT;
	id = words[at] >> OFFSET_BITS;
	if (id == NO_RULE)
		return -WALK_NO_UNWIND_INFO;
	if (id >= exe->rules_count)
		return -WALK_RULE_UNSUPPORTED;
	return exe->rules + id;
}

// The number of the rule of the frame; negative: -enum walk_reason.
static __always_inline int rule_of_frame(struct walk *walk, u32 place)
{
	u64 address = walk->pc - !walk->is_exact;

	if (address < walk->mapping.start || address >= walk->mapping.end) {
		int err = find_mapping(place, address);

#ifdef LIVE_MAPPINGS
		if (err != GO_ON && !walk->version)
			err = find_live_mapping(place, address);
#endif
		if (err != GO_ON)
			return -WALK_UNKNOWN_MAPPING;
	}
	return find_rule(walk->mapping.exe, address - walk->mapping.bias);
}

// Where the rule of the frame's return address is remembered, or would be.
static __always_inline struct known_rule *known_rule(struct walk *walk, u32 place)
{
	struct known_rules *known = bpf_map_lookup_elem(&known_rules, &place);
	u32 at = (walk->pc ^ walk->pc >> 9) & (KNOWN_RULES - 1);

	if (!known)
		return 0;
	OPAQUE(at);
	return &known->by_address[at & (KNOWN_RULES - 1)];
}

static __always_inline void remember_rule(struct walk *walk, u32 place)
{
	struct known_rule *known = known_rule(walk, place);

	if (!known)
		return;
#ifdef LIVE_MAPPINGS
	if (!walk->version)
		return;
#endif
	known->pc = walk->pc;
	known->version = walk->version;
	known->rule = walk->rule;
}

// Whether the rule in the walk is of its kind of code: Wine has both in one process. GO_ON; or else how
// the walk ends.
static __always_inline int is_of_code(struct walk *walk)
{
	return !(walk->rule.flags & OF_I386) == !walk->is_32_bits ? GO_ON : WALK_RULE_UNSUPPORTED;
}

// Puts the rule of the frame into the walk: GO_ON, or how the walk ends without it. As in
// step_by_rule(): what calls do is another function's.
__noinline int find_rule_of_frame(u32 place)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	struct known_rule *known;
	struct rule *rule;
	u32 number;
	int found;

	if (!walk)
		return WALK_RULE_UNSUPPORTED;
	known = known_rule(walk, place);
	walk->is_called = 0;
	if (known && !walk->is_exact && known->pc == walk->pc && known->version == walk->version) {
		walk->rule = known->rule;
		walk->is_called = 1;
		return is_of_code(walk);
	}
	found = rule_of_frame(walk, place);
	if (found < 0)
		return -found;
	number = found;
	rule = bpf_map_lookup_elem(&rules, &number);
	if (!rule)
		return WALK_RULE_UNSUPPORTED;
	walk->rule = *rule;
	return is_of_code(walk);
}

#endif
