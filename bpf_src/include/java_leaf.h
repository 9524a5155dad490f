// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Frames of HotSpot's code that was interrupted, on x86_64: before a frame is made, or after it is
// left, the bytes at pc tell where the return address is.
#ifndef JAVA_LEAF_H
#define JAVA_LEAF_H

#include "java_layout.h"

enum java_leaf {
	LEAF_WHOLE,  // the frame is as everywhere
	LEAF_ON_TOP, // the return address is on top of the stack
	LEAF_PUSHED, // rbp is on top, the return address above it
	LEAF_MADE,   // all but rbp is where it will be
	LEAF_BY_FP,  // rbp leads to both
};

#define LARGEST_FRAME_OF_ENTRY (1u << 16)
#define BYTES(word, count) ((word) & ((1ull << 8 * (count)) - 1))

static __always_inline bool reads_code(struct walk *walk, struct java_walk *java)
{
	return read_user(java->code, sizeof(java->code), walk->pc - 8);
}

static __always_inline bool in_java_code(struct java_walk *java, u64 word)
{
	return word - java->layout.low < java->size;
}

// cmp rsp, [r15+n] (17), test [r10], eax (11), ret, jmp, vzeroupper: what ends a method.
static __always_inline bool is_end(u64 code)
{
	u64 three = BYTES(code, 3);

	return three == 0xa73b49 || three == 0x673b49 || three == 0x978b4d || three == 0x77f8c5 ||
	       BYTES(code, 1) == 0xc3 || BYTES(code, 1) == 0xe9;
}

// Behind the frame of a compiled method.
static __always_inline int method_end(struct java_walk *java)
{
	u64 now = java->code[1], next = java->code[2];
	u8 before = java->code[0] >> 56;

	if (BYTES(now, 1) == 0xc3)
		return LEAF_ON_TOP;
	if (BYTES(now, 1) == 0x5d && is_end(now >> 8))
		return LEAF_PUSHED;
	// Only wrappers of native methods have `leave`; instructions such as xor r9d, r9d end with its byte.
	if (before == 0x5d &&
	    (is_end(now) || BYTES(now, 4) == 0x087f8349 || BYTES(now, 3) == 0x7f8149))
		return LEAF_ON_TOP;
	if ((BYTES(now, 2) == 0x870f || BYTES(now, 2) == 0x850f) && (now >> 48 & 0xff) == 0xc3)
		return LEAF_ON_TOP;	 // ja, jne to the slow path of a poll
	if (BYTES(now, 4) == 0xc3028541) // test [r10], eax; ret
		return LEAF_ON_TOP;
	if (BYTES(now, 2) == 0xbb48 && (next >> 16 & 0xff) == 0xe9) // a static call's stub
		return LEAF_ON_TOP;
	if (BYTES(now, 2) == 0xba49 && (next >> 16 & 0xffffff) == 0x97894d &&
	    BYTES(next >> 40, 3) == java->layout.thread_saved_pc) // the slow path
		return LEAF_ON_TOP;
	if (BYTES(now, 3) == 0x97894d && (u32)(now >> 24) == java->layout.thread_saved_pc)
		return LEAF_ON_TOP;
	return LEAF_WHOLE;
}

// The check of JDK 20 and later whether a method may be entered, behind the frame: cmp [r15+n], imm; jne or
// je and a call. A nop may be before it.
static __always_inline bool is_entry_check(struct java_walk *java)
{
	u64 now = java->code[1], before = java->code[0];
	bool is_made = BYTES(before >> 8, 3) == 0xec8148 || BYTES(before >> 32, 3) == 0xec8348;

	return BYTES(now, 3) == 0x7f8141 || (is_made && BYTES(now, 1) == 0x90) ||
	       BYTES(before, 3) == 0x7f8141 || (before >> 48 == 0x0574 && BYTES(now, 1) == 0xe8);
}

// Where the return address of a compiled method is: enum java_leaf.
__noinline int method_leaf(u32 place)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	struct java_walk *java = bpf_map_lookup_elem(&java_walks, &place);
	u64 now;
	u8 before;

	if (!walk || !java || !reads_code(walk, java))
		return LEAF_WHOLE;
	now = java->code[1];
	before = java->code[0] >> 56;
	if (BYTES(now, 3) == 0x24448f || BYTES(now, 4) == 0x24448f48)
		walk->sp += 8; // pop to memory: what was pushed to be spilled
	if (walk->pc >= java->complete)
		return method_end(java);
	if (is_entry_check(java))
		return LEAF_WHOLE;
	if (before == 0x55 || BYTES(now, 3) == 0xec8b48 || BYTES(now, 3) == 0xe58948)
		return LEAF_PUSHED;
	if (BYTES(now, 4) == 0x246c8948 || BYTES(now, 4) == 0x24ac8948) // mov [rsp+n], rbp
		return LEAF_MADE;
	if (walk->pc == java->begin || BYTES(now, 1) == 0x55 || BYTES(now, 3) == 0xec8148 ||
	    BYTES(now, 3) == 0xec8348) {
		u64 last = java->code[0] >> 40; // mov rbp, rsp; behind it rsp is lower soon

		return last == 0xec8b48 || last == 0xe58948 ? LEAF_BY_FP : LEAF_ON_TOP;
	}
	if (BYTES(now, 3) == 0x248489 || BYTES(now, 5) == 0x441f0f)
		return LEAF_ON_TOP; // a bang, a nop
	return (java->code[0] >> 40) == 0xec8b48 ? LEAF_BY_FP : LEAF_ON_TOP;
}

// The same of a native method's wrapper, whose stack pointer moves.
__noinline int native_leaf(u32 place)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	struct java_walk *java = bpf_map_lookup_elem(&java_walks, &place);
	u64 distance, least;

	if (!walk || !java || !reads_code(walk, java))
		return LEAF_BY_FP;
	least = java->frame_size - 16;
	distance = walk->fp - walk->sp;
	if (distance >= least && distance < least + 144)
		return LEAF_BY_FP;
	if (java->code[0] >> 56 == 0x55 && BYTES(java->code[1], 3) == 0xec8b48)
		return LEAF_PUSHED;
	return walk->fp == walk->sp ? LEAF_PUSHED : LEAF_ON_TOP;
}

#define PUSHED_WORDS 8

// Whether the call before a return address leads into the method.
static __always_inline bool calls_method(struct java_walk *java, u64 address)
{
	u64 code = 0;

	if (!in_java_code(java, address) || !read_user(&code, sizeof(code), address - 8))
		return false;
	return BYTES(code >> 24, 1) == 0xe8 &&
	       address + (__s32)(code >> 32) - java->begin <= java->complete - java->begin;
}

// How many words C2's code has pushed on its frame of a method that was interrupted, whose words from the saved rbp
// on are in `words`: it does while it compares or searches strings. Only code of the JVM calls compiled methods. A
// call of this method is sure; other return addresses may be old. -1: there is none.
__noinline int pushed_words(u32 place)
{
	struct java_walk *java = bpf_map_lookup_elem(&java_walks, &place);

	if (!java)
		return -1;
#pragma clang loop unroll(disable)
	for (u32 word = 0; word < PUSHED_WORDS; word++) {
		OPAQUE(word);
		if (word >= PUSHED_WORDS)
			break;
		if (calls_method(java, java->words[word + 1]))
			return word;
	}
	if (in_java_code(java, java->words[1]))
		return 0;
	return in_java_code(java, java->words[2]) ? 1 : -1;
}

static __always_inline bool put_caller(struct java_walk *java, u64 pc, u64 sp, u64 fp)
{
	java->words[11] = pc;
	java->words[9] = sp;
	java->words[10] = fp;
	return true;
}

// The end of the interpreter's code for a return: pop r13; mov rsp, rbx; jmp r13. 1: `words` has the caller.
__noinline int leave_codelet(u32 place)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	struct java_walk *java = bpf_map_lookup_elem(&java_walks, &place);
	u64 code = 0, word;

	if (!walk || !java || !read_user(&code, sizeof(code), walk->pc))
		return 0;
	if (code == 0xe5ff41e38b485d41ull) {
		if (!read_user(&word, sizeof(word), walk->sp))
			return 0;
		return put_caller(java, word, walk->bx, walk->fp);
	}
	if (BYTES(code, 6) == 0xe5ff41e38b48ull)
		return put_caller(java, walk->r13, walk->bx, walk->fp);
	if (BYTES(code, 3) == 0xe5ff41)
		return put_caller(java, walk->r13, walk->sp, walk->fp);
	return 0;
}

// The entry of a method in the interpreter, before its frame: rbx is the method, r13 the caller's stack
// pointer. 1: `words` has the caller.
__noinline int leave_entry(u32 place)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	struct java_walk *java = bpf_map_lookup_elem(&java_walks, &place);
	u64 code = 0, top[2];

	if (!walk || !java || walk->r13 < walk->sp ||
	    walk->r13 - walk->sp > LARGEST_FRAME_OF_ENTRY ||
	    !read_user(&code, sizeof(code), walk->pc) || !read_user(top, sizeof(top), walk->sp))
		return 0;
	if (BYTES(code, 5) == 0xec8b485550ull && in_java_code(java, walk->ax))
		return put_caller(java, walk->ax, walk->r13, walk->fp);
	if (BYTES(code, 3) == 0xec8b48 && in_java_code(java, top[1]))
		return put_caller(java, top[1], walk->r13, top[0]);
	if (in_java_code(java, top[0]))
		return put_caller(java, top[0], walk->r13, walk->fp);
	if (in_java_code(java, walk->ax))
		return put_caller(java, walk->ax, walk->r13, walk->fp);
	return 0;
}

#define ENTER 0xec8b4855 // push rbp; mov rbp, rsp

// Whether a stub has a frame pointer of its own: it begins with `ENTER`, and is behind it.
static __always_inline bool has_entered(struct walk *walk, struct java_walk *java)
{
	u32 code = 0;

	return walk->pc - java->begin >= 4 && walk->pc - java->begin < 1 << 16 &&
	       read_user(&code, sizeof(code), java->begin) && code == ENTER;
}

// Where the return address is in a stub that C2 made, or -1: its frame is made by sub rsp.
static __always_inline int compiled_stub_leaf(struct walk *walk, struct java_walk *java)
{
	u64 first = 0, now, before;

	if (!reads_code(walk, java) || !read_user(&first, sizeof(first), java->begin))
		return -1;
	now = java->code[1];
	before = java->code[0];
	if (BYTES(first, 3) != 0xec8148 && BYTES(first, 3) != 0xec8348)
		return -1;
	if (walk->pc == java->begin || BYTES(now, 1) == 0xc3 ||
	    (before >> 56 == 0x5d && BYTES(before >> 24, 3) == 0xc48348))
		return LEAF_ON_TOP;
	if (walk->pc < java->begin + 8 && BYTES(now, 4) == 0x246c8948)
		return LEAF_MADE;
	if (BYTES(now, 1) == 0x5d && BYTES(before >> 32, 3) == 0xc48348)
		return LEAF_PUSHED;
	if (BYTES(now, 2) == 0x8f48)
		walk->sp += 8; // pop to memory: what was pushed to be copied
	return LEAF_WHOLE;
}

// The blob that looks for the handler of an exception gets the return address in rdx, pushes it, and has it
// there again at its end: push rdx; sub rsp, 8; mov [rsp], rbp ... pop rdx; mov r8, rax; mov rax, [r15+n]; mov rdx,
// [r15+n]; mov [r15+n], 0; jmp r8. 1: `words` has the caller.
static __always_inline int leave_exception_blob(struct walk *walk, struct java_walk *java)
{
	u64 first = 0, top[2];
	u32 now = BYTES(java->code[1], 3), before = BYTES(java->code[0] >> 8, 3);

	if (!read_user(&first, sizeof(first), java->begin) || BYTES(first, 5) != 0x08ec834852)
		return 0;
	// The body has instructions that begin like those of the end, which come one behind another.
	if (walk->pc == java->begin || java->code[0] >> 56 == 0x5a ||
	    java->code[0] >> 32 == 0xc08b4c5a || (now == 0x978b49 && before == 0x878b49) ||
	    (now == 0x87c749 && before == 0x978b49) || now == 0xe0ff41)
		return in_java_code(java, walk->dx) ?
			       put_caller(java, walk->dx, walk->sp, walk->fp) :
			       0;
	if (!read_user(top, sizeof(top), walk->sp))
		return 0;
	if (walk->pc == java->begin + 1 || BYTES(java->code[1], 1) == 0x5a)
		return put_caller(java, top[0], walk->sp + 8, walk->fp);
	return put_caller(java, top[1], walk->sp + 16,
			  walk->pc == java->begin + 5 ? walk->fp : top[0]);
}

// A stub that C2 made, or the blob of exceptions. 1: `words` has the caller, 0: it is another one.
__noinline int leave_compiled_stub(u32 place)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	struct java_walk *java = bpf_map_lookup_elem(&java_walks, &place);
	u64 saved[2];
	int where;

	if (!walk || !java)
		return 0;
	where = compiled_stub_leaf(walk, java);
	if (where < 0)
		return leave_exception_blob(walk, java);
	if (where == LEAF_WHOLE || where == LEAF_MADE) {
		if (java->frame_size < 16 || java->frame_size >= 1 << 14)
			return 0;
		if (!read_user(saved, sizeof(saved), walk->sp + java->frame_size - 16) ||
		    !in_java_code(java, saved[1]))
			return 0;
		return put_caller(java, saved[1], walk->sp + java->frame_size,
				  where == LEAF_MADE ? walk->fp : saved[0]);
	}
	if (!read_user(saved, sizeof(saved), walk->sp))
		return 0;
	if (where == LEAF_PUSHED)
		return put_caller(java, saved[1], walk->sp + 16, saved[0]);
	return put_caller(java, saved[0], walk->sp + 8, walk->fp);
}

// A stub that was interrupted. 1: `words` has the caller.
__noinline int leave_stub_leaf(u32 place)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	struct java_walk *java = bpf_map_lookup_elem(&java_walks, &place);
	u64 top[2];

	if (!walk || !java)
		return 0;
	if (leave_compiled_stub(place))
		return in_java_code(java, java->words[11]);
	if (has_entered(walk, java) && walk->fp - walk->sp <= LARGEST_FRAME_OF_ENTRY &&
	    read_user(top, sizeof(top), walk->fp) && in_java_code(java, top[1]))
		return put_caller(java, top[1], walk->fp + 16, top[0]);
	if (!read_user(top, sizeof(top), walk->sp))
		return 0;
	if (in_java_code(java, top[0]))
		return put_caller(java, top[0], walk->sp + 8, walk->fp);
	if (in_java_code(java, top[1]))
		return put_caller(java, top[1], walk->sp + 16, top[0]);
	if (java->frame_size >= 16 && java->frame_size < 1 << 14) {
		if (!read_user(top, sizeof(top), walk->sp + java->frame_size - 16) ||
		    !in_java_code(java, top[1]))
			return 0;
		return put_caller(java, top[1], walk->sp + java->frame_size, top[0]);
	}
	if (walk->fp < walk->sp || walk->fp - walk->sp > LARGEST_FRAME_OF_ENTRY ||
	    !read_user(top, sizeof(top), walk->fp) || !in_java_code(java, top[1]))
		return 0;
	return put_caller(java, top[1], walk->fp + 16, top[0]);
}

#endif
