// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The settings, records and maps of the steps through HotSpot's frames, java_steps.h.
//
// A Java frame stands in a stack as a word that no address is: tag (11 bits), whether it is one of
// the interpreter (1), a number (28), and the place in the code (24). A number is that of a compilation,
// or of a method that the interpreter runs.
#ifndef JAVA_LAYOUT_H
#define JAVA_LAYOUT_H

#include "walk.h"

#define JAVA_TAG (0x2A6ull << 53)
#define JAVA_INTERPRETED (1ull << 52)
#define JAVA_NUMBER_SHIFT 24
#define JAVA_EXACT (1u << 23) // of a place: an address that nothing returns to
#define JAVA_PLACE (JAVA_EXACT - 1)
#define JAVA_STUB (1u << 22) // in place of a number: code that is no method
#define JAVA_IN_HEAP 1	     // in place of such code's place
#define NO_METHOD 0xFFFFFFF  // its record had no room
#define JAVA_HEAPS 3
#define BLOB_BYTES 384
#define JAVA_CPUS 511 // that give numbers, of 17 bits each in every place; user space has the last
#define JAVA_COUNT_BITS 17

// Offsets as in purebpf/runtimes/hotspot/layout.py; 0xFFFF: this version has none.
struct java_process {
	u64 identity;	// of the program that the process executed; 0: any
	u64 generation; // of this entry
	u64 low;	// of all heaps
	u64 high;
	u64 heap_low[JAVA_HEAPS];
	u64 heap_high[JAVA_HEAPS];
	u64 heap_segments[JAVA_HEAPS];
	u64 name_compiled; // addresses of the names of blobs
	u64 name_native;
	u64 name_interpreter;
	u64 name_frameless;
	u64 symbol_mask; // what stays of the first word of a Symbol: not the count of its uses
	u64 unloaded;	 // address of the number of classes that the JVM has unloaded; 0: none
	u64 name_continuation; // of stubs above which a virtual thread has callers in the heap; 0: none
	u32 shift;	       // the logarithm of a segment's size
	__u16 block_size;
	__u16 block_used;
	__u16 blob_size; // bytes to read for all of this
	__u16 blob_name;
	__u16 blob_begin;
	__u16 blob_complete;
	__u16 blob_frame_size;
	__u16 nmethod_method;
	__u16 nmethod_id;
	__u16 nmethod_orig_pc;
	__u16 nmethod_deopt;
	__u16 nmethod_deopt_mh;
	__u16 method_constant;
	__u16 constant_size;
	__u16 constant_code_size;
	__u16 thread_saved_pc;
	__u16 constant_pool;
	__u16 constant_name;
	__u16 pool_size;
	__u16 pool_class;
	__u16 class_name;
	u8 has_offsets;
	u8 pad;
};

// Kinds of objects of V8 whose types are checked.
enum v8_kind {
	V8_FUNCTIONS,
	V8_SHARED,
	V8_SCRIPT,
	V8_BYTECODES,
	V8_KINDS,
};

// V8 in a process: offsets and types as in purebpf/runtimes/v8/layout.py.
struct v8_process {
	u64 identity; // of the program that the process executed; 0: any
	u64 generation;
	u64 builtins[2]; // where they begin; V8 may map them again beside the code that it generates
	u64 builtins_size; // 0: the process has no V8
	__u16 map_type;
	__u16 function_shared;
	__u16 shared_script;
	__u16 shared_literal;
	__u16 script_id;
	__u16 bytecode_data; // less the tag of a pointer
	__u16 type_function_first;
	__u16 type_function_last;
	__u16 type_shared;
	__u16 type_script;
	__u16 type_bytecode;
	__u16 pad;
};

// Compilations have numbers of their own. A method is told from one that had its memory before by its
// ConstMethod and by what the names of its class and its own are: `method_identity`.
// A function of V8 has the numbers of its script and of the function in it, and its generation the thread.
struct java_key {
	u64 generation;
	u64 address; // of the blob, or of the Method; V8: the numbers
	u64 check; // the number of the compilation, or the address of the ConstMethod and the identity of the
		// method; V8: the address of generated code, 0 in the interpreter
};

// What `java_names` carries.
struct java_code {
	struct java_key key;
	u64 method;   // address of the Method; V8: of the SharedFunctionInfo
	u64 pc;	      // V8, in the interpreter: the bytecodes
	u64 identity; // of the Method; 0: it could not be read
	u64 unloaded; // how many classes the JVM had unloaded; all ones: it does not say
	u32 number;
	u32 is_interpreted;
};

struct java_walk {
	struct java_process layout;
	struct v8_process v8;
	struct java_key key;
	struct java_code record;
	u64 at; // the blob
	u64 name;
	u64 begin;    // of its code
	u64 complete; // from here on the frame of a method is made
	u64 frame_size;
	u64 size; // of all heaps; 0: the process runs no JVM
	u64 pool; // of the class whose identity `class` is; 0: none
	u64 class;
	u64 constant;	    // the ConstMethod in place of the blob
	u64 maps[V8_KINDS]; // V8: of the last object of each kind
	u64 script;	    // V8: of the function before
	u64 script_number;
	u32 index; // of the bytecode of an interpreter's frame
	u32 frames;
	u64 blob[BLOB_BYTES / 8 + 1]; // a word more: fields are read as words
	u64 words[12];
	u64 code[3]; // 8 bytes before pc, and 16 from it
};

// One event per line.
struct java_stats {
	u64 java_frames;
	u64 java_stacks;      // with Java frames
	u64 java_cut;	      // ends of stacks at a Java frame; the next four say why some are
	u64 java_no_blob;     // ends of stacks: no code there
	u64 java_no_bytecode; // a frame of the interpreter whose bytecode is not of its method
	u64 java_no_frame;    // a frame elsewhere, or none
	u64 java_leaf;	      // a leaf in a state that is not known
	u64 java_names_lost;  // `java_names` had no room
	u64 java_told;
	u64 v8_frames;
	u64 v8_stacks; // with frames of V8
	u64 v8_cut;    // ends of stacks at a frame of V8 that is elsewhere
};

CONFIG bool java = false;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u32); // tgid of the initial pid namespace
	__type(value, struct java_process);
} javas SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u32); // tgid of the initial pid namespace
	__type(value, struct v8_process);
} v8s SEC(".maps");

// What has not been met for long makes room: it is introduced again when it is.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 32768);
	__type(key, struct java_key);
	__type(value, u32);
} java_codes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} java_names SEC(".maps");

struct java_code *java_names_type; // of what it carries

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, WALK_PLACES);
	__type(key, u32);
	__type(value, struct java_walk);
} java_walks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, WALK_PLACES);
	__type(key, u32);
	__type(value, struct java_stats);
} java_stats SEC(".maps");

#endif
