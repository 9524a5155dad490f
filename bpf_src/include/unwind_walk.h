// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Walks a user stack by the tables of unwind_tables.h, on x86_64 and arm64.
//
// It gives up, and says why, wherever purebpf/unwind/unwinder.py would have to do more than follow
// a packed rule; what it calls complete is what that gives for the same registers and memory.
//
// Each part is a global function of scalars, which the verifier checks once and by itself.
#ifndef UNWIND_WALK_H
#define UNWIND_WALK_H

#include "unwind_tables.h"
#include "user_registers.h"

#define WALK_FRAMES 127
#ifndef WALK_EXTRA
#define WALK_EXTRA 0 // room behind the frames, for others than native ones
#endif
#ifndef WALK_PLACES
#define WALK_PLACES 1 // programs that may interrupt each other on a CPU
#endif
#define GO_ON -1
#define NO_RULE 0 // number of a rule, of each file
#define MAPPING_STEPS 16 // for 32,768 mappings, and one to see that it is found
#define ROW_STEPS 12	 // for 1,025 rows
#define STRIDE 8	 // frames that one of two loops is for
#define KNOWN_RULES 512	 // that a CPU remembers
#define NEAR_BYTES 256	 // of a function's start, in which a frame is set up

// Follow rules for the leaf only, then frame pointers: cheap, and whole where all code has them.
CONFIG bool walks_frame_pointers = false;

struct task_struct___exec {
	u64 self_exec_id; // 32 bits wide before Linux 5.7 (d1e7fd6462ca)
} __attribute__((preserve_access_index));

struct walk {
	u64 pc; // of the frame's next instruction
	u64 sp;
	u64 fp;
	struct code_mapping mapping; // that the last address was in
	u32 list;
	u32 count;
	u32 version; // of the mappings
	u32 is_called; // a call is known to have left pc
	struct rule rule; // of the frame
	u32 is_exact;	// pc is no return address: of the leaf, or of what a signal interrupted
	u32 is_fp_lost; // fp is not known
	u32 depth;
	u32 reason;
	u32 guessed; // steps by frame pointer, for lack of a rule
	u32 guessed_at; // frames that there were at the last of them
	u64 lr; // arm64: where a leaf returns to; signed or not
	u8 code[NEAR_BYTES + 8]; // in which a frame that was set up is looked for
	// The leaf's address, then return addresses; one that a signal interrupted has 1 added, so
	// that the address before is in the function that ran.
	u64 frames[WALK_FRAMES + WALK_EXTRA];
};

// Written by the program at `place` on this CPU.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, WALK_PLACES);
	__type(key, u32);
	__type(value, struct walk);
} walks SEC(".maps");

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

#define EXECUTED_BITS 10
#define EXECUTED_MASK ((1 << EXECUTED_BITS) - 1)

// Changes when a process executes another program, and when its number is used again: when the
// process began (CLOCK_MONOTONIC, 54 bits), and how many programs it has executed (10 bits; a child
// begins with the number of its parent).
static __always_inline u64 process_identity(void)
{
	struct task_struct *leader = BPF_CORE_READ((struct task_struct *)bpf_get_current_task(),
						   group_leader);
	struct task_struct___exec *executed = (void *)leader;

	return BPF_CORE_READ(leader, start_time) << EXECUTED_BITS |
	       (BPF_CORE_READ(executed, self_exec_id) & EXECUTED_MASK);
}

// Whether a list is of the program that a process executes. The child that was reported at a time
// began before it; one that gets its number later begins later.
static __always_inline bool is_of(struct process_mappings *known, u64 identity)
{
	if (!known->is_forked)
		return known->identity == identity;
	return !((known->identity ^ identity) & EXECUTED_MASK) &&
	       (long)(known->identity - identity) >= 0;
}

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

static __always_inline bool read_user(void *to, u32 size, u64 address)
{
	return !bpf_probe_read_user(to, size, (void *)address);
}

#define CODE(back) ((u8)(code >> (64 - 8 * (back)))) // the byte so far before an address
#define CALL_INDIRECT(size) (CODE(size) == 0xff && (CODE((size) - 1) & 0x38) == 0x10)

#include "walk_arm64.h"

// Whether the 8 bytes before an address end in a call.
static __always_inline bool ends_in_call(u64 code)
{
	if (arm64_code_bits)
		return is_arm64_call(code >> 32);
	return CODE(5) == 0xe8 || CALL_INDIRECT(2) || CALL_INDIRECT(3) || CALL_INDIRECT(4) ||
	       CALL_INDIRECT(6) || CALL_INDIRECT(7);
}

// Whether a call may have left the return address of a frame: rules hold for no other. libgcc
// writes the address of an exception handler over one (uw_install_context_1) before it goes there,
// and makecontext(3) begins a stack with a function. GO_ON; or else how the walk ends.
__noinline int check_call(u32 place)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	u64 code, key;
	u32 *is_entry;

	if (!walk)
		return WALK_RULE_UNSUPPORTED;
	if (!read_user(&code, sizeof(code), walk->pc - sizeof(code))) {
		key = (u64)walk->mapping.exe << 48 |
		      ((walk->pc - walk->mapping.bias) & ((1ull << 48) - 1));
		is_entry = bpf_map_lookup_elem(&call_sites, &key);
		if (!is_entry)
			return WALK_READ_FAULT;
		return *is_entry ? WALK_RULE_UNSUPPORTED : GO_ON;
	}
	return ends_in_call(code) ? GO_ON : WALK_RULE_UNSUPPORTED;
}

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
		if (!read_user(&cfa, sizeof(cfa), walk->fp + rule->cfa))
			return WALK_READ_FAULT;
		break;
	case RULE_DEREF_SP:
		if (!read_user(&cfa, sizeof(cfa), walk->sp + rule->cfa))
			return WALK_READ_FAULT;
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

// The number of the rule of the frame; negative: -enum walk_reason.
static __always_inline int rule_of_frame(struct walk *walk, u32 place)
{
	u64 address = walk->pc - !walk->is_exact;

	if (address < walk->mapping.start || address >= walk->mapping.end) {
		int err = find_mapping(place, address);

		if (err != GO_ON)
			return -WALK_UNKNOWN_MAPPING;
	}
	return find_rule(walk->mapping.exe, address - walk->mapping.bias);
}

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

// Follows the frame pointer, if it looks like one.
__noinline int step_by_guess(u32 place)
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
	if (walk->fp < walk->sp || walk->fp & 7)
		return WALK_NO_UNWIND_INFO;
	if (!read_user(saved, sizeof(saved), walk->fp))
		return WALK_READ_FAULT;
	if (!saved[1] && !walks_frame_pointers) // no frame: an outermost one is named by 0
		return WALK_NO_UNWIND_INFO;
	return leave(walk, place, walk->fp + 16, saved[0], saved[1]);
}

// Leaves a leaf that has taken `depth` bytes from the stack: Go's may have no frame.
__noinline int step_by_depth(u32 place, u32 depth)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	u64 caller, fp, at;

	if (!walk)
		return WALK_NO_UNWIND_INFO;
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
	return leave(walk, place, at + 8, fp, caller);
}

#include "walk_leaf.h"

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
	if (depth == DEPTH_OUTERMOST || depth == DEPTH_ELSEWHERE)
		return WALK_NO_UNWIND_INFO;
	if (is_signal(walk))
		return step_from_signal(place);
	if (walk->is_exact) {
		if (arm64_code_bits && is_arm64_stub(walk->pc))
			return to_return_address(walk, walk->sp, walk->lr);
		if (depth >= 0)
			return step_by_depth(place, depth);
		if (!arm64_code_bits && step_from_leaf(place, depth == DEPTH_FRAMELESS) == GO_ON)
			return GO_ON;
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
	if (depth == DEPTH_FRAMELESS && !walks_frame_pointers)
		return WALK_NO_UNWIND_INFO;
	return step_by_guess(place);
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
	known->pc = walk->pc;
	known->version = walk->version;
	known->rule = walk->rule;
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
		return GO_ON;
	}
	found = rule_of_frame(walk, place);
	if (found < 0)
		return -found;
	number = found;
	rule = bpf_map_lookup_elem(&rules, &number);
	if (!rule)
		return WALK_RULE_UNSUPPORTED;
	walk->rule = *rule;
	return GO_ON;
}

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
	found = walks_frame_pointers && depth ? GO_ON : find_rule_of_frame(place);
	if (found == WALK_UNKNOWN_MAPPING && depth) // no frame: its address may be anything
		return WALK_UNKNOWN_MAPPING;
	walk->frames[depth] = walk->pc + (depth && walk->is_exact);
	walk->depth = depth + 1;
	if (walks_frame_pointers && depth)
		return step_by_guess(place);
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

// To the caller in a 32-bit task, by its frame pointer. False: there is none.
__noinline int step_in_32_bits(u32 place)
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

__noinline int take_steps_in_32_bits(u32 place)
{
	int more = 1;

#pragma clang loop unroll(disable)
	for (u32 taken = 0; taken < STRIDE; taken++) {
		OPAQUE(taken);
		more = step_in_32_bits(place);
		if (!more)
			break;
	}
	return more;
}

static __always_inline void walk_32_bits(struct walk *walk, u32 place)
{
	walk->sp = (u32)walk->sp;
	walk->fp = (u32)walk->fp;
#pragma clang loop unroll(disable)
	for (u32 taken = 0; taken < WALK_FRAMES; taken += STRIDE) {
		OPAQUE(taken);
		if (!take_steps_in_32_bits(place))
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
	walk->mapping.start = walk->mapping.end = 0;
	walk->is_exact = 1;
	walk->is_fp_lost = 0;
	walk->guessed = 0;
	walk->guessed_at = ~0u - 1;
	walk->depth = 1;
	walk->frames[0] = from->ip;
}

// Walks the stack of the current task from its user registers; `process` is its tgid in the
// initial pid namespace. The walk at `place` has what came of it.
static __always_inline void walk_stack(struct walk *walk, u32 place, struct registers *from,
				       u32 process, u64 identity)
{
	struct process_mappings *known = bpf_map_lookup_elem(&procs, &process);
	int reason = GO_ON;

	begin_walk(walk, from);
	if (from->cs != USER_CS) {
		walk_32_bits(walk, place);
		return;
	}
	if (!known || !is_of(known, identity)) {
		walk->reason = WALK_PROCESS_UNKNOWN;
		return;
	}
	walk->list = known->list;
	walk->count = known->count;
	walk->version = known->version;
	walk->depth = 0;
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
	walk->reason = reason;
}

// Whether user space may do better with a copy of the stack.
static __always_inline bool copy_helps(u32 reason)
{
	return reason == WALK_UNKNOWN_MAPPING || reason == WALK_RULE_UNSUPPORTED ||
	       reason == WALK_READ_FAULT || reason == WALK_PROCESS_UNKNOWN ||
	       reason == WALK_NOT_BUILT;
}

#endif
