// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Goes from a frame of HotSpot's code to its caller, on x86_64. purebpf/runtimes/hotspot/frames.py does the
// same from outside. Code saves rbp as a callee does, so that it is right in each frame if each step
// restores it.
//
// The thread is in the interrupt: nothing of its stack can be freed. Other threads change other code, so
// that a look-up may lead nowhere; it is bounded, and counted.
#ifndef JAVA_STEPS_H
#define JAVA_STEPS_H

#include "java_leaf.h"

#define SEGMENT_HOPS 12
#define SEGMENT_FREE 0xff
#define MOST_SHIFT 31
#define LARGEST_JAVA_FRAME (1u << 18)
#define SENDER_SP 9 // words of an interpreter's frame from 80 bytes below its frame pointer
#define METHOD_WORD 7
#define BYTECODE_WORD 2
#define SAVED_FP 10
#define RETURN_WORD 11
#define WORDS_BELOW 80
#define WORDS_MADE 64 // of a frame that is whole, below its frame pointer
#define AT_ENTRY 1    // in place of a bytecode
#define POPPED 8      // bytes of the caller that a method may have taken from the stack
// As in purebpf/runtimes/hotspot/methods.py.
#define IDENTITY_FIRST 0x9E3779B97F4A7C15ull
#define IDENTITY_SECOND 0xC2B2AE3D27D4EB4Full
#define CONSTANT_BYTES 56 // of a ConstMethod, with all fields that are used
#define IDENTITY_NAME 0x165667B19E3779F9ull
#define IDENTITY_LINES 0x27D4EB2F165667C5ull

static __always_inline u64 blob_word(struct java_walk *walk, u32 offset)
{
	u8 *bytes = (u8 *)walk->blob;

	offset &= 511;
	OPAQUE(offset);
	if (offset > BLOB_BYTES)
		return 0;
	return *(u64 *)(bytes + offset);
}

// Puts the blob of an address into the walk; 0: there is none.
__noinline int find_blob(u32 place, u64 address)
{
	struct java_walk *java = bpf_map_lookup_elem(&java_walks, &place);
	u64 low = 0, segments = 0, segment, shift;
	u8 byte = SEGMENT_FREE;

	if (!java)
		return 0;
#pragma clang loop unroll(full)
	for (u32 i = 0; i < JAVA_HEAPS; i++) {
		if (address >= java->layout.heap_low[i] && address < java->layout.heap_high[i]) {
			low = java->layout.heap_low[i];
			segments = java->layout.heap_segments[i];
		}
	}
	shift = java->layout.shift & MOST_SHIFT;
	segment = (address - low) >> shift;
#pragma clang loop unroll(disable)
	for (u32 hop = 0; hop < SEGMENT_HOPS; hop++) {
		OPAQUE(hop);
		if (!read_user(&byte, sizeof(byte), segments + segment) || byte == SEGMENT_FREE)
			return 0;
		if (!byte)
			break;
		segment -= byte;
	}
	low += segment << shift;
	if (byte || !read_user(&byte, sizeof(byte), low + java->layout.block_used) || !byte)
		return 0;
	java->at = low + java->layout.block_size;
	shift = java->layout.blob_size;
	OPAQUE(shift);
	if (shift > BLOB_BYTES)
		shift = BLOB_BYTES;
	return !bpf_probe_read_user(java->blob, shift, (void *)java->at);
}

// Takes the fields of every blob from the one that was read.
static __always_inline void read_blob(struct java_walk *java)
{
	struct java_process *layout = &java->layout;

	java->name = blob_word(java, layout->blob_name);
	java->frame_size = (u64)(u32)blob_word(java, layout->blob_frame_size) << 3;
	java->begin = blob_word(java, layout->blob_begin);
	if (layout->has_offsets) {
		java->begin = java->at + (u32)java->begin;
		java->complete = java->begin + (__u16)blob_word(java, layout->blob_complete);
	} else {
		java->complete = java->begin + (u32)blob_word(java, layout->blob_complete);
	}
}

// What the name of a class is: where it is, and how it begins.
static __always_inline u64 class_identity(struct java_walk *java, u64 pool)
{
	u64 *word = java->code; // a leaf reads its code later

	if (java->pool == pool)
		return java->class;
	if (!read_user(&word[2], sizeof(*word), pool + java->layout.pool_class) ||
	    !read_user(&word[2], sizeof(*word), word[2] + java->layout.class_name) ||
	    !read_user(word, 2 * sizeof(*word), word[2]))
		return 0;
	java->pool = pool;
	java->class = (word[2] ^ (word[0] & java->layout.symbol_mask) * IDENTITY_FIRST ^
		       word[1] * IDENTITY_SECOND);
	return java->class;
}

// Puts a ConstMethod in place of the blob; its address, or 0.
static __always_inline u64 read_constant(struct java_walk *java, u64 method)
{
	u64 constant = 0;

	if (!read_user(&constant, sizeof(constant), method + java->layout.method_constant) ||
	    !read_user(java->blob, CONSTANT_BYTES, constant))
		return 0;
	java->constant = constant;
	return constant;
}

// What the names of the method in `record`, whose ConstMethod is in place of the blob, and of its class are. Memory
// of an unloaded class may get a method of another class, with everything else at the same addresses, and memory of a
// redefined one its next version: the beginning of its lines, behind its bytecodes, tells these apart. 0: pages are
// missing, as some are of classes in the shared archive, which are never unloaded.
__noinline u64 method_identity(u32 place)
{
	struct java_walk *java = bpf_map_lookup_elem(&java_walks, &place);
	u64 pool, class;
	__u16 size;

	if (!java)
		return 0;
	pool = blob_word(java, java->layout.constant_pool);
	size = blob_word(java, java->layout.constant_code_size);
	class = class_identity(java, pool);
	if (!class ||
	    !read_user(java->code, sizeof(*java->code),
		       pool + java->layout.pool_size +
			       8 * (blob_word(java, java->layout.constant_name) & 0xffff)) ||
	    !read_user(&java->code[1], 2 * sizeof(*java->code),
		       java->constant + java->layout.constant_size + size))
		return 0;
	return class ^ (java->code[0] & ~1ull) * IDENTITY_NAME ^
	       (java->code[1] ^ java->code[2] * IDENTITY_FIRST) * IDENTITY_LINES;
}

// The number of the code of `key`, which user space is told when it is met first.
__noinline u32 java_number(u32 place)
{
	struct java_walk *java = bpf_map_lookup_elem(&java_walks, &place);
	struct java_stats *st = bpf_map_lookup_elem(&java_stats, &place);
	u32 *known, number, cpu = bpf_get_smp_processor_id();

	if (!java || !st)
		return NO_METHOD;
	java->record.identity = 0;
	if (java->size && java->record.is_interpreted) {
		java->record.identity = method_identity(place);
		java->key.check ^= java->record.identity;
	}
	known = bpf_map_lookup_elem(&java_codes, &java->key);
	if (known)
		return *known;
	if (java->size && !java->record.is_interpreted && read_constant(java, java->record.method))
		java->record.identity = method_identity(place);
	if (!java->size || !java->layout.unloaded ||
	    !read_user(&java->record.unloaded, sizeof(java->record.unloaded),
		       java->layout.unloaded))
		java->record.unloaded = ~0ull;
	number = ++st->java_told;
	if (number >> JAVA_COUNT_BITS || cpu >= JAVA_CPUS || place > 3) {
		st->java_names_lost++;
		return NO_METHOD;
	}
	number |= (place << 9 | cpu) << JAVA_COUNT_BITS;
	java->record.key = java->key;
	java->record.number = number;
	if (bpf_ringbuf_output(&java_names, &java->record, sizeof(java->record), 0)) {
		st->java_names_lost++;
		return NO_METHOD;
	}
	bpf_map_update_elem(&java_codes, &java->key, &number, BPF_ANY);
	return number;
}

// Puts a word for the frame in place of its address.
static __always_inline void put_java_frame(struct walk *walk, u64 word)
{
	u32 depth = walk->depth - 1;

	OPAQUE(depth);
	if (depth < WALK_FRAMES)
		walk->frames[depth] = JAVA_TAG | word;
}

static __always_inline int to_java_caller(struct walk *walk, u64 pc, u64 sp, u64 fp)
{
	if (sp <= walk->sp && !(walk->is_exact && walk->sp - sp <= POPPED))
		return WALK_RULE_UNSUPPORTED;
	walk->pc = pc;
	walk->sp = sp;
	walk->fp = fp;
	walk->is_exact = 0;
	walk->is_fp_lost = 0;
	return pc ? GO_ON : WALK_NO_CALLER;
}

// Whether a bytecode is of a method: `index` says which one, and `key` which method. 1 or 0. At the entry of a method
// there is no bytecode yet: all that is known is that it has a name.
__noinline int find_bytecode(u32 place, u64 method, u64 bytecode)
{
	struct java_walk *java = bpf_map_lookup_elem(&java_walks, &place);
	u64 constant, start;
	__u16 size;

	if (!java)
		return 0;
	constant = read_constant(java, method);
	if (!constant)
		return 0;
	size = blob_word(java, java->layout.constant_code_size);
	java->key.address = method;
	java->key.check = constant;
	java->index = 0;
	start = constant + java->layout.constant_size;
	if (bytecode == AT_ENTRY)
		return method_identity(place) != 0;
	if (!size)
		return !bytecode || bytecode == start;
	if (bytecode < start || bytecode - start >= size)
		return 0;
	java->index = bytecode - start;
	return 1;
}

__noinline int leave_interpreter(u32 place)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	struct java_walk *java = bpf_map_lookup_elem(&java_walks, &place);
	struct java_stats *st = bpf_map_lookup_elem(&java_stats, &place);
	bool is_found = false;
	u64 word;
	u32 number;

	if (!walk || !java || !st)
		return WALK_RULE_UNSUPPORTED;
	if (walk->is_exact && leave_codelet(place)) {
		put_java_frame(walk, (u64)JAVA_STUB << JAVA_NUMBER_SHIFT);
		return to_java_caller(walk, java->words[RETURN_WORD], java->words[SENDER_SP],
				      java->words[SAVED_FP]);
	}
	if (walk->fp < walk->sp || walk->fp - walk->sp > LARGEST_JAVA_FRAME || walk->fp & 7 ||
	    bpf_probe_read_user(java->words, sizeof(java->words),
				(void *)(walk->fp - WORDS_BELOW))) {
		st->java_no_frame++;
		return WALK_RULE_UNSUPPORTED;
	}
	word = java->words[METHOD_WORD];
	if (walk->is_exact && walk->fp - walk->sp < WORDS_MADE) { // the frame is being made
		if (walk->fp == walk->sp)
			java->words[SENDER_SP] = walk->r13;
		is_found = find_bytecode(place, walk->bx, AT_ENTRY);
	} else {
		if (walk->is_exact)
			is_found = find_bytecode(place, word, walk->r13);
		if (!is_found)
			is_found = find_bytecode(place, word, java->words[BYTECODE_WORD]);
		if (!is_found && walk->is_exact && leave_entry(place))
			is_found = find_bytecode(place, walk->bx, AT_ENTRY);
	}
	if (!is_found) {
		st->java_no_bytecode++;
		return WALK_RULE_UNSUPPORTED;
	}
	java->key.generation = java->layout.generation << 1 | 1;
	java->record.method = java->key.address;
	java->record.pc = walk->pc;
	java->record.is_interpreted = 1;
	number = java_number(place);
	put_java_frame(walk, JAVA_INTERPRETED | (u64)number << JAVA_NUMBER_SHIFT | java->index);
	return to_java_caller(walk, java->words[RETURN_WORD], java->words[SENDER_SP],
			      java->words[SAVED_FP]);
}

// The true return address of a frame that is to be deoptimised; others have theirs.
static __always_inline u64 true_return(struct walk *walk, struct java_walk *java)
{
	struct java_process *layout = &java->layout;
	u64 deopt = blob_word(java, layout->nmethod_deopt);
	u64 deopt_mh = blob_word(java, layout->nmethod_deopt_mh);
	u64 pc = walk->pc, back = (u32)blob_word(java, layout->nmethod_orig_pc);

	if (layout->has_offsets) {
		deopt = java->at + (u32)deopt;
		deopt_mh = java->at + (u32)deopt_mh;
	}
	if (walk->is_exact || (pc != deopt && pc != deopt_mh))
		return pc;
	if (!read_user(&pc, sizeof(pc), walk->sp + back))
		return 0;
	return pc;
}

__noinline int leave_compiled(u32 place)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	struct java_walk *java = bpf_map_lookup_elem(&java_walks, &place);
	struct java_stats *st = bpf_map_lookup_elem(&java_stats, &place);
	u64 pc, saved[2];
	u32 number, pushed;
	int where = LEAF_WHOLE;

	if (!walk || !java || !st)
		return WALK_RULE_UNSUPPORTED;
	pc = true_return(walk, java);
	java->key.generation = java->layout.generation << 1;
	java->key.address = java->at;
	java->key.check = (u32)blob_word(java, java->layout.nmethod_id);
	java->record.method = blob_word(java, java->layout.nmethod_method);
	java->record.pc = pc;
	java->record.is_interpreted = 0;
	number = java_number(place);
	put_java_frame(walk, (u64)number << JAVA_NUMBER_SHIFT | ((pc - java->begin) & JAVA_PLACE) |
				     (walk->is_exact ? JAVA_EXACT : 0));
	if (walk->is_exact)
		where = java->name == java->layout.name_native ? native_leaf(place) :
								 method_leaf(place);
	if (where == LEAF_BY_FP) {
		if (!read_user(saved, 16, walk->fp))
			return WALK_READ_FAULT;
		return to_java_caller(walk, saved[1], walk->fp + 16, saved[0]);
	}
	if (where == LEAF_PUSHED) {
		if (!read_user(saved, 16, walk->sp))
			return WALK_READ_FAULT;
		return to_java_caller(walk, saved[1], walk->sp + 16, saved[0]);
	}
	pc = walk->sp + java->frame_size;
	if (where == LEAF_ON_TOP)
		pc = walk->sp + 8;
	if (where != LEAF_WHOLE) { // rbp is not saved yet, or is restored
		if (!read_user(&saved[1], 8, pc - 8))
			return WALK_READ_FAULT;
		return to_java_caller(walk, saved[1], pc, walk->fp);
	}
	if (java->frame_size < 16 || java->frame_size > LARGEST_JAVA_FRAME ||
	    !read_user(saved, sizeof(saved), pc - 16))
		return WALK_READ_FAULT;
	if (!walk->is_exact ||
	    bpf_probe_read_user(java->words, sizeof(u64) * (PUSHED_WORDS + 1), (void *)(pc - 16)))
		return to_java_caller(walk, saved[1], pc, saved[0]);
	pushed = pushed_words(place);
	if (pushed >= PUSHED_WORDS) {
		st->java_leaf++;
		return WALK_RULE_UNSUPPORTED;
	}
	OPAQUE(pushed);
	if (pushed >= PUSHED_WORDS)
		return WALK_RULE_UNSUPPORTED;
	return to_java_caller(walk, java->words[pushed + 1], pc + 8 * pushed, java->words[pushed]);
}

__noinline int leave_stub(u32 place)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	struct java_walk *java = bpf_map_lookup_elem(&java_walks, &place);
	struct java_stats *st = bpf_map_lookup_elem(&java_stats, &place);
	bool in_heap;
	u64 saved[2];

	if (!walk || !java || !st)
		return WALK_RULE_UNSUPPORTED;
	in_heap = !walk->is_exact && java->name == java->layout.name_continuation;
	put_java_frame(walk, (u64)JAVA_STUB << JAVA_NUMBER_SHIFT | (in_heap ? JAVA_IN_HEAP : 0));
	if (java->name == java->layout.name_frameless) {
		if (!read_user(saved, 8, walk->sp))
			return WALK_READ_FAULT;
		return to_java_caller(walk, saved[0], walk->sp + 8, walk->fp);
	}
	if (walk->is_exact) {
		if (!leave_stub_leaf(place)) {
			st->java_leaf++;
			return WALK_RULE_UNSUPPORTED;
		}
		return to_java_caller(walk, java->words[RETURN_WORD], java->words[SENDER_SP],
				      java->words[SAVED_FP]);
	}
	if (java->frame_size >= 16 && java->frame_size < 1 << 14) {
		if (!read_user(saved, sizeof(saved), walk->sp + java->frame_size - 16))
			return WALK_READ_FAULT;
		return to_java_caller(walk, saved[1], walk->sp + java->frame_size, saved[0]);
	}
	if (walk->fp < walk->sp || walk->fp - walk->sp > LARGEST_JAVA_FRAME ||
	    !read_user(saved, sizeof(saved), walk->fp)) {
		st->java_no_frame++;
		return WALK_RULE_UNSUPPORTED;
	}
	return to_java_caller(walk, saved[1], walk->fp + 16, saved[0]);
}

static __always_inline int leave_java(struct java_walk *java, u32 place)
{
	if (java->name == java->layout.name_compiled || java->name == java->layout.name_native)
		return leave_compiled(place);
	if (java->name == java->layout.name_interpreter)
		return leave_interpreter(place);
	return leave_stub(place);
}

// Leaves a frame of HotSpot's code. A stack that is cut here is not copied: user space knows no more.
__noinline int step_java(u32 place)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	struct java_walk *java = bpf_map_lookup_elem(&java_walks, &place);
	struct java_stats *st = bpf_map_lookup_elem(&java_stats, &place);
	int found = WALK_NO_UNWIND_INFO;

	if (!walk || !java || !st)
		return WALK_RULE_UNSUPPORTED;
	st->java_frames++;
	if (!java->frames++)
		st->java_stacks++;
	if (find_blob(place, walk->pc - !walk->is_exact)) {
		read_blob(java);
		found = leave_java(java, place);
	} else {
		st->java_no_blob++;
	}
	if (found == GO_ON)
		return GO_ON;
	st->java_cut++;
	return found == WALK_NO_CALLER ? WALK_NO_CALLER : WALK_NO_UNWIND_INFO;
}

// Whether an address is in the code of the JVM of the process that is walked.
static __always_inline bool is_java(u32 place, u64 address)
{
	struct java_walk *walk = bpf_map_lookup_elem(&java_walks, &place);

	return walk && address - walk->layout.low < walk->size;
}

// Prepares for the JVM or V8 of the process that is walked, at the first frame of its stack. What that needs is in
// the walk: some programs have no room for more calls in their stacks (512 bytes in all, Linux 6.1).
__noinline int begin_java(u32 place)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	struct java_walk *java = bpf_map_lookup_elem(&java_walks, &place);
	struct java_process *layout;
	struct v8_process *v8;

	if (!walk || !java)
		return 0;
	java->size = 0;
	java->frames = 0;
	java->pool = 0;
	java->script = 0;
	__builtin_memset(java->maps, 0, sizeof(java->maps));
	java->v8.builtins_size = 0;
	v8 = bpf_map_lookup_elem(&v8s, &walk->process);
	if (v8 && (!v8->identity || v8->identity == walk->identity))
		java->v8 = *v8;
	layout = bpf_map_lookup_elem(&javas, &walk->process);
	if (!layout || (layout->identity && layout->identity != walk->identity))
		return 0;
	java->layout = *layout;
	java->size = layout->high - layout->low;
	return 0;
}

#endif
