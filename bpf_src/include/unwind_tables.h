// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The tables that user stacks are walked by: user space fills them, programs only read them.
//
// A word address is 32 bits: shard << 18 | word. Shards grow only: a block never changes once an
// index points at it. User space writes a block first and its index word last; a program gets to
// the block through that word, so that the dependency orders its loads.
#ifndef UNWIND_TABLES_H
#define UNWIND_TABLES_H

#include "purebpf.h"

#define SHARD_BITS 18
#define SHARD_WORDS (1u << SHARD_BITS)
#define SHARD_MASK (SHARD_WORDS - 1)
#define WINDOW_BITS 10 // of text: 1 KiB
#define OFFSET_BITS 11 // of a row: where in its window it begins; the others are its rule
#define MAPPING_WORDS 8

// How a trace ended: purebpf/unwind/reason.py has them all.
enum walk_reason {
	WALK_COMPLETE = 0,
	WALK_FP_GUESS = 2,
	WALK_NO_UNWIND_INFO = 3,
	WALK_UNKNOWN_MAPPING = 4,
	WALK_RULE_UNSUPPORTED = 5,
	WALK_READ_FAULT = 6,
	WALK_TOO_DEEP = 7,
	WALK_COPY_LOST = 9,
	WALK_COPY_REFUSED = 10,
	WALK_PROCESS_UNKNOWN = 11,
	WALK_COMPAT32 = 15,
	WALK_NOT_BUILT = 16,
	WALK_NO_CALLER = 19, // a return address of 0
	WALK_REASONS = 32,
};

// purebpf/unwind/packed_rule.py has both enums, and what they mean.
enum rule_kind {
	RULE_INVALID = 0,
	RULE_END,
	RULE_SP,
	RULE_FP,
	RULE_PLT,
	RULE_SIGNAL,
	RULE_DEREF_FP,
	RULE_DEREF_SP,
	RULE_DEPTH = 9,
};

// In place of the depth of RULE_DEPTH: the caller is on another stack; there is none.
#define DEPTH_ELSEWHERE -2
#define DEPTH_OUTERMOST -3
#define DEPTH_FRAMELESS -4 // of code that keeps no frame pointers, either
#define DEPTH_UNKNOWN -5   // of the same, by its instructions: a leaf has a frame, or may have one
// Added to depths, which are multiples of 8: what the function returns to was interrupted and has not
// called it, or its frame is on another stack than those that it calls.
#define DEPTH_INTERRUPTED 1
#define DEPTH_FRAME_ELSEWHERE 2

enum rule_flags {
	FP_SAVED = 1,
	FP_UNDEFINED = 2,
	FP_AT_FP = 4,
	RA_IN_REGISTER = 8,
	RA_PAIR = 16,
	RA_ALONE = 32,
	OF_I386 = 64, // 32-bit code of x86_64
};

struct rule {
	short saved;
	u8 kind;
	u8 flags;
	int cfa;
};

// What a window's index word may say besides where its block is.
#define WINDOW_NOT_BUILT 0

// A file. Number 0 is code that has no rules: generated, or of a file that cannot be read.
struct exe {
	u32 index; // word address, of one word for each window; 0: none of them is built
	u32 windows;
	u64 first; // number of the first window
	u32 rules; // number of the rule that the file calls 0
	u32 rules_count;
	u64 unused;
};

// The executable mappings of a process: `count` of them, by start.
struct process_mappings {
	u32 list; // word address, a multiple of 8
	u32 count;
	u64 identity;  // of the program that the process executed: see process_identity()
	u32 is_forked; // it has its parent's, and began at the time in `identity` or before
	u32 version;   // of the list: a number that no other one had
};

struct code_mapping {
	u64 start;
	u64 end;
	u64 bias; // subtract it to get the file's own addresses
	u32 exe;
	u32 unused;
};

struct shard {
	u32 words[SHARD_WORDS];
};

struct shard_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct shard));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 64);
	__type(key, u32);
	__array(values, struct shard_map);
} shards SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct rule);
} rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, struct exe);
} exes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u32); // tgid of the initial pid namespace
	__type(value, struct process_mappings);
} procs SEC(".maps");

// Return addresses, as exe << 48 | address in the file, that user space saw a call before: for code
// that is not in memory, or not mapped yet. After fork(2) a child maps only what it executes.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, u64);
	__type(value, u32); // 1: a function begins there, and no call left it
} call_sites SEC(".maps");

struct code_mapping *code_mappings_record; // the type of what a list holds

// The words of the shard of a word address.
static __always_inline u32 *shard_words(u32 address)
{
	u32 number = address >> SHARD_BITS, zero = 0;
	void *inner = bpf_map_lookup_elem(&shards, &number);
	struct shard *shard;

	if (!inner)
		return 0;
	shard = bpf_map_lookup_elem(inner, &zero);
	return shard ? shard->words : 0;
}

#endif
