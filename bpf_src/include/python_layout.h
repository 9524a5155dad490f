// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The settings, records and maps of the reader of Python frames, python_frames.h.
//
// A frame is one word that is no address: tag, whether the evaluation loop begins there, the number
// of its code object, and the instruction that it executes.
#ifndef PYTHON_LAYOUT_H
#define PYTHON_LAYOUT_H

#include "purebpf.h"

#define PYTHON_FRAMES 96
#define DEEP_PYTHON_FRAMES 1000 // if user space gets them one by one: see `python_deep`
#define PYTHON_TAG (0x2A5ull << 53)
#define PYTHON_ENTRY (1ull << 52)
#define CODE_SHIFT 24
#define NO_CODE 0xFFFFFFF // of 28 bits: its names have no room, or it cannot be read
#define NAME_BYTES 256
#define PATH_BYTES 256
#define STACK_REF_TAG 7ull // bits of a _PyStackRef (3.14) that are not of the object's address
#define FIELD_BYTES 128	   // of a frame, and of a code object, that are read at once
#define TEXT_WORDS 12	   // of a string behind its type, that are read at once
#define TEXT_BYTES (NAME_BYTES + PATH_BYTES)
#define TABLE_BYTES 1024 // of a table of lines, that go to user space

#ifndef PYTHON_PLACES
#define PYTHON_PLACES 1
#endif

enum python_style {
	EVERY_FRAME = 0, // up to 3.10, each frame has its own call of the loop
	ENTRY_FLAG = 1,	 // 3.11
	SHIM_FRAMES = 2, // 3.12
	PHP_FRAMES = 3,	 // no Python: see php_frames.h
	RUBY_FRAMES = 4, // and ruby_frames.h
};

// Offsets as in purebpf/runtimes/cpython/layout.py; those that a version does not have are 0. Those of a code
// object are from `code_start`.
struct python_process {
	u64 identity;	// of the program that the process executed; 0: any
	u64 generation; // of this entry: tells code objects of processes apart
	__s32 slot;	// from pthread_self() to the thread state's, or to a pointer before it
	u32 slot_inner; // from there, if it is one
	u8 is_indirect;
	u8 has_current;
	u8 style;
	u8 has_version; // code objects have a number of their own
	__u16 thread_id;
	__u16 frame;
	__u16 current;
	__u16 frame_code;
	__u16 frame_previous;
	__u16 frame_instruction;
	__u16 frame_owner;
	__u16 frame_size; // to read for all of this
	__u16 code_start;
	__u16 code_filename;
	__u16 code_name; // qualified where it is
	__u16 code_first_line;
	__u16 code_version;
	__u16 code_lines;
	__u16 code_size;  // to read for all of this
	__u16 code_bytes; // from the code object
	__u16 ascii_size;
	__u16 compact_size;
	__u16 string_length;
	__u16 string_state;
	__u16 bytes_length;
	__u16 bytes_data;
	__u16 thread_interpreter;
	__u16 gil_size;
	__u16 gil_locked;
	__u16 gil_holder;
	u32 gil_in_interpreter;
	u32 threads; // in an interpreter
	u64 gil;     // its address; 0: in `gil_in_interpreter` of the interpreter, a pointer to it
	u64 main_interpreter; // whose threads may run another interpreter; 0: not before 3.12
	__u16 thread_next;
	__u16 pointer_distance; // from pthread_self() to the thread pointer; 0 on x86_64
	__u16 frame_tlbc;
	__u16 code_tlbc; // 0: all threads have the same code units
	u32 newest;	 // version of the code objects that were met, in the main interpreter
	u8 string_shift;
	u8 pad[3];
	u64 executor;	   // of PHP: the address of executor_globals
	u64 generators;	   // and of the pointer to the class of generators; 0: not known
	u32 function_file; // in a function; of Ruby, the lines in the content of code
	u32 pad_end;
};

// Code objects are freed, and another one gets the same memory, for its strings as well: `identity`
// is of the number that CPython gives each (3.12), or of what its strings say.
struct code_key {
	u64 generation;
	u64 code;
	u64 identity;
};

// Code objects of one function: programs that compile the same again and again do not need names,
// numbers and stacks for each.
struct function_key {
	u64 generation;
	u64 hash; // of name, file and first line
};

// What `python_names` carries, as far as its bytes go: those of the name, of the path, and of a table
// of lines that is not longer than TABLE_BYTES.
struct python_code {
	u64 generation;
	u64 name; // addresses
	u64 path;
	u64 lines;
	u64 lines_hash; // by which user space knows that it reads the same
	u64 code; // what user space has to read, if its version is from `least` to `most`; 0: nothing
	u32 number;
	u32 first_line;
	u32 name_state;	 // PyASCIIObject.state
	u32 name_length; // characters; of which as many as there is room for
	u32 path_state;
	u32 path_length;
	u32 lines_size; // of the table; 0 where none are wanted
	u32 least;
	u32 most;
	u32 pad;
	u8 text[TEXT_BYTES + TABLE_BYTES];
};

struct python_walk {
	u64 frame; // to read next
	u32 depth;
	u32 is_cut; // memory could not be read
	u64 code;   // of the last frame, and its number
	u64 file;   // the last path of a code object without a version, and its identity
	u64 file_identity;
	u32 number;
	u32 newest;		  // as in `layout`, with what this walk has met
	u32 is_main;		  // versions of other interpreters do not tell
	u32 is_unread;		  // a text, or a table of lines, of `code_fields`
	u32 version;		  // of the same
	u32 task_depth;		  // frames up to the first one of the task that runs; 0: not met
	u64 state;		  // of the thread
	u64 task_frame;		  // the address of that frame: see python_tasks.h
	struct code_key code_key; // here, as 6.1 lets all functions of a chain have 512 bytes
	struct function_key function_key;
	u64 php_outermost; // of generators that wait, of which php_frames.h has met up to `php_above`
	u64 php_above;
	u64 php_caller; // of the outermost
	u64 ruby_end;	// of the frames
	u32 least;	// version of what is deferred
	u32 most;
	struct python_process layout;	       // of this process
	u64 frame_fields[FIELD_BYTES / 8 + 1]; // a word more: fields are read as words
	u64 code_fields[FIELD_BYTES / 8 + 1];
	u64 text[TEXT_WORDS];
	u64 words[DEEP_PYTHON_FRAMES];
};

struct python_stats {
	u64 python_stacks; // samples with Python frames
	u64 python_frames;
	u64 python_cut;	       // a frame, or what leads to it, could not be read
	u64 python_too_deep;   // more than python_room()
	u64 python_unnamed;    // frames of code objects whose names could not be sent
	u64 python_deferred;   // frames of code objects that user space has to read
	u64 python_names_lost; // `python_names` had no room
	u64 python_awaited;    // stacks with tasks that await the one that runs
};

CONFIG bool python = false;
CONFIG bool python_lines = false;
CONFIG bool python_deep = false;
u32 thread_pointer_at = 0; // in struct task_struct; user space looks it up
u32 python_number = 0;	   // of the next function

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u32); // tgid of the initial pid namespace
	__type(value, struct python_process);
} pythons SEC(".maps");

// What has not been met for long makes room: it is introduced again when it is.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 32768);
	__type(key, struct code_key);
	__type(value, u32);
} python_codes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 32768);
	__type(key, struct function_key);
	__type(value, u32);
} python_functions SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} python_names SEC(".maps");

struct python_code *python_names_type; // of what it carries

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PYTHON_PLACES);
	__type(key, u32);
	__type(value, struct python_code);
} python_records SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PYTHON_PLACES);
	__type(key, u32);
	__type(value, struct python_walk);
} python_walks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PYTHON_PLACES);
	__type(key, u32);
	__type(value, struct python_stats);
} python_stats SEC(".maps");

#endif
