// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Goes from a frame of V8's code to its caller, on x86_64, and names it. All have a frame pointer, but
// for a leaf in its prologue or behind its frame. purebpf/runtimes/v8/frames.py does the same from outside.
//
// Functions move on V8's heap. They are named by the numbers of their script and of the function in
// it, which stay; scripts are numbered for each thread that runs JavaScript.
#ifndef V8_STEPS_H
#define V8_STEPS_H

#include "java_steps.h"

#define LARGEST_V8_FRAME (1u << 20)
#define V8_BELOW 48 // bytes of a frame below its frame pointer
#define V8_OFFSET \
	1 // words from there: the place of the bytecode, its array, the function, its context
#define V8_BYTECODE 2
#define V8_FUNCTION 4
#define V8_CONTEXT 5
#define V8_SAVED_FP 6
#define V8_RETURN 7
#define V8_WORDS 8

// Whether an address is in V8's builtins.
static __always_inline bool in_v8_builtins(struct v8_process *v8, u64 address)
{
	return address - v8->builtins[0] < v8->builtins_size ||
	       address - v8->builtins[1] < v8->builtins_size;
}

// Whether a frame is V8's: of builtins, or of memory without a file.
static __always_inline bool is_v8(struct walk *walk, u32 place, int found)
{
	struct java_walk *java = bpf_map_lookup_elem(&java_walks, &place);

	if (!java || !java->v8.builtins_size)
		return false;
	return (found == WALK_NO_UNWIND_INFO && !walk->mapping.exe) ||
	       in_v8_builtins(&java->v8, walk->pc - !walk->is_exact);
}

static __always_inline bool is_of_kind(struct v8_process *v8, u32 kind, __u16 type)
{
	if (kind == V8_FUNCTIONS)
		return type >= v8->type_function_first && type <= v8->type_function_last;
	if (kind == V8_SHARED)
		return type == v8->type_shared;
	return type == (kind == V8_SCRIPT ? v8->type_script : v8->type_bytecode);
}

// Whether an object is of a kind. Most of a kind have one map, which is looked at once in a walk: the thread is in
// the interrupt, and nothing moves.
__noinline int is_v8_object(u32 place, u64 pointer, u32 kind)
{
	struct java_walk *java = bpf_map_lookup_elem(&java_walks, &place);
	u64 map = 0;
	__u16 type = 0;

	if (!java || kind >= V8_KINDS || (pointer & 3) != 1 ||
	    !read_user(&map, sizeof(map), pointer - 1) || (map & 3) != 1)
		return 0;
	if (map == java->maps[kind])
		return 1;
	if (!read_user(&type, sizeof(type), map - 1 + java->v8.map_type) ||
	    !is_of_kind(&java->v8, kind, type))
		return 0;
	java->maps[kind] = map;
	return 1;
}

// Puts the function of a frame into `key` and `record`; 0: it is none with a script.
__noinline int find_v8_function(u32 place, u64 function)
{
	struct java_walk *java = bpf_map_lookup_elem(&java_walks, &place);
	u64 shared = 0, script = 0;
	u32 literal = 0;

	if (!java || !is_v8_object(place, function, V8_FUNCTIONS) ||
	    !read_user(&shared, sizeof(shared), function - 1 + java->v8.function_shared) ||
	    !is_v8_object(place, shared, V8_SHARED) ||
	    !read_user(&script, sizeof(script), shared - 1 + java->v8.shared_script) ||
	    !read_user(&literal, sizeof(literal), shared - 1 + java->v8.shared_literal))
		return 0;
	if (script != java->script) {
		java->script = 0;
		if (!is_v8_object(place, script, V8_SCRIPT) ||
		    !read_user(&java->script_number, sizeof(java->script_number),
			       script - 1 + java->v8.script_id))
			return 0;
		java->script = script;
	}
	java->key.address = (java->script_number & ~0xffffffffull) | literal;
	java->record.method = shared;
	return 1;
}

// Puts a word for the function of a frame in place of its address; its words are in the walk. What
// has no script keeps its address, which has a symbol in most builds.
__noinline int name_v8_frame(u32 place, u64 pc)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	struct java_walk *java = bpf_map_lookup_elem(&java_walks, &place);
	u64 at = 0, offset;

	if (!walk || !java || !(java->words[V8_CONTEXT] & 1) ||
	    !find_v8_function(place, java->words[V8_FUNCTION]))
		return 0;
	java->key.generation = java->v8.generation << 1 | 1 |
			       (u64)(u32)bpf_get_current_pid_tgid() << 32;
	java->key.check = pc;
	java->record.pc = pc;
	java->record.is_interpreted = 0;
	offset = java->words[V8_OFFSET];
	if (!(offset & 1) && is_v8_object(place, java->words[V8_BYTECODE], V8_BYTECODES)) {
		java->key.check = 0;
		java->record.pc = java->words[V8_BYTECODE];
		java->record.is_interpreted = 1;
		at = (offset >> 32) - java->v8.bytecode_data;
	}
	put_java_frame(walk, (u64)java_number(place) << JAVA_NUMBER_SHIFT | (at & JAVA_PLACE));
	return 1;
}

// How a leaf is left that has no frame yet, or none any more: words above the stack pointer up to its
// return address, and this one; 0: it has a frame, or is in a state that is not known.
static __always_inline u32 v8_leaf_words(struct walk *walk, struct java_walk *java)
{
	u64 now;
	u8 before;

	if (!reads_code(walk, java))
		return 0;
	now = java->code[1];
	before = java->code[0] >> 56;
	if (BYTES(now, 1) == 0xc3 || (BYTES(now, 1) == 0xc2 && !BYTES(now >> 16, 1)) ||
	    BYTES(now, 4) == 0xe5894855 || BYTES(now, 4) == 0xec8b4855)
		return 1;
	if ((before == 0x55 && (BYTES(now, 3) == 0xe58948 || BYTES(now, 3) == 0xec8b48)) ||
	    BYTES(now, 2) == 0xc35d || BYTES(now, 2) == 0xc25d)
		return 2;
	return 0;
}

__noinline int step_v8(u32 place)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	struct java_walk *java = bpf_map_lookup_elem(&java_walks, &place);
	struct java_stats *st = bpf_map_lookup_elem(&java_stats, &place);
	u64 saved[2];
	u32 words;

	if (!walk || !java || !st)
		return WALK_RULE_UNSUPPORTED;
	st->v8_frames++;
	if (!java->frames++)
		st->v8_stacks++;
	if (walk->is_exact) {
		words = v8_leaf_words(walk, java);
		if (words == 1 && read_user(&saved[1], 8, walk->sp))
			return to_java_caller(walk, saved[1], walk->sp + 8, walk->fp);
		if (words == 2 && read_user(saved, sizeof(saved), walk->sp))
			return to_java_caller(walk, saved[1], walk->sp + 16, saved[0]);
		walk->guessed++;
	}
	if (walk->is_fp_lost || walk->fp < walk->sp || walk->fp - walk->sp > LARGEST_V8_FRAME ||
	    walk->fp & 7 ||
	    bpf_probe_read_user(java->words, 8 * V8_WORDS, (void *)(walk->fp - V8_BELOW))) {
		st->v8_cut++;
		return WALK_NO_UNWIND_INFO;
	}
	name_v8_frame(place, walk->pc);
	return to_java_caller(walk, java->words[V8_RETURN], walk->fp + 16,
			      java->words[V8_SAVED_FP]);
}

#endif
