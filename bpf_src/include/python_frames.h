// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The Python frames of the current thread, read by itself: nothing changes while they are read.
// x86_64. See docs/design/0011-python-frames.md.
//
// A frame is one word that is no address: tag, whether the evaluation loop begins there, the number
// of its code object, and what it executes. Names are read once, when a code object is first met,
// and go to user space through `python_names`. All memory belongs to the process and may hold
// anything: every loop is bounded, and what cannot be read ends the walk.
#ifndef PYTHON_FRAMES_H
#define PYTHON_FRAMES_H

#include "purebpf.h"

#define PYTHON_FRAMES 96
#define PYTHON_STRIDE 16 // frames that one of two loops is for: see unwind_walk.h
#define PYTHON_TAG (0x2A5ull << 53)
#define PYTHON_ENTRY (1ull << 52)
#define CODE_SHIFT 24
#define NO_CODE 0xFFFFFFF // of 28 bits: its names have no room, or it cannot be read
#define INSTRUCTION_MASK 0xFFFFFF
#define NAME_BYTES 256
#define PATH_BYTES 256
#define SHIM 3 // FRAME_OWNED_BY_CSTACK (3.12), _INTERPRETER (3.14): no code, below the first of a call
#define STACK_REF_TAG 7ull // bits of a _PyStackRef (3.14) that are not of the object's address
#define MOST_STRING (1u << 20)

#ifndef PYTHON_PLACES
#define PYTHON_PLACES 1
#endif

enum python_style {
	EVERY_FRAME = 0, // up to 3.10, each frame has its own call of the loop
	ENTRY_FLAG = 1,	 // 3.11
	SHIM_FRAMES = 2, // 3.12
};

// Offsets as in purebpf/cpython/layout.py; those that a version does not have are 0.
struct python_process {
	u64 identity;	 // of the program that the process executed; 0: any
	u64 generation;	 // of this entry: tells code objects of processes apart
	__s32 slot;	 // from the thread pointer to the thread state's, or to a pointer before it
	u32 slot_inner;	 // from there, if it is one
	u8 is_indirect;
	u8 has_current;
	u8 style;
	u8 pad;
	__u16 thread_id;
	__u16 frame;
	__u16 current;
	__u16 frame_code;
	__u16 frame_previous;
	__u16 frame_instruction;
	__u16 frame_owner;
	__u16 code_filename;
	__u16 code_name; // qualified where it is
	__u16 code_first_line;
	__u16 code_lines;
	__u16 code_bytes;
	__u16 ascii_size;
	__u16 compact_size;
	__u16 string_length;
	__u16 string_state;
	__u16 thread_interpreter;
	__u16 gil_size;
	u64 gil; // its address; 0: in `gil_in_interpreter` of the interpreter, a pointer to it
	u32 gil_in_interpreter;
	__u16 gil_locked;
	__u16 gil_holder;
	__u16 code_plain_name; // of which CPython has the hash, as it interns it
	__u16 string_hash;
	u32 unused;
};

// Code objects are freed, and another one gets the same memory, for its names as well: the hash of
// its name tells them apart.
struct code_key {
	u64 generation;
	u64 code;
	u64 name;
	u64 filename;
	u64 first_line;
	u64 hash;
};

// What `python_names` carries.
struct python_code {
	struct code_key key;
	u64 lines; // address of the table
	u32 number;
	u32 name_state; // PyASCIIObject.state
	u32 name_length; // characters; of which as many as there is room for
	u32 path_state;
	u32 path_length;
	u32 pad;
	u8 name[NAME_BYTES];
	u8 path[PATH_BYTES];
};

struct python_walk {
	u64 frame; // to read next
	u64 process; // struct python_process of this tgid
	u32 depth;
	u32 is_cut; // memory could not be read
	u64 words[PYTHON_FRAMES];
};

struct python_stats {
	u64 python_stacks; // samples with Python frames
	u64 python_frames;
	u64 python_cut;	      // a frame could not be read
	u64 python_too_deep;  // more than PYTHON_FRAMES
	u64 python_unnamed;   // frames of code objects that found no room
	u64 python_names_lost; // `python_names` had no room
};

CONFIG bool python = false;
CONFIG bool python_lines = false;
u32 fsbase_at = 0; // in struct task_struct; user space looks it up

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u32); // tgid of the initial pid namespace
	__type(value, struct python_process);
} pythons SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct code_key);
	__type(value, u32);
} python_codes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} python_names SEC(".maps");

struct python_code *python_names_record; // the type of what it carries

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

// Numbers given out at a place on this CPU.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PYTHON_PLACES);
	__type(key, u32);
	__type(value, u32);
} python_numbers SEC(".maps");

static __always_inline u64 user_word(u64 address)
{
	u64 word = 0;

	bpf_probe_read_user(&word, sizeof(word), (void *)address);
	return word;
}

static __always_inline u32 user_half(u64 address)
{
	u32 half = 0;

	bpf_probe_read_user(&half, sizeof(half), (void *)address);
	return half;
}

// A string's state, length and first bytes.
static __always_inline void read_string(struct python_process *layout, u64 address, u32 *state,
					u32 *length, u8 *to, u32 room)
{
	u64 characters = user_word(address + layout->string_length);
	u64 size; // compared as 64 bits: Linux 6.1 forgets what a comparison of 32 says of the rest
	u32 kind, start;

	*state = user_half(address + layout->string_state);
	*length = characters < MOST_STRING ? characters : MOST_STRING;
	kind = *state >> 2 & 7;
	size = (u64)*length * kind;
	start = *state & 1 << 6 ? layout->ascii_size : layout->compact_size;
	OPAQUE(size);
	if (size > room)
		size = room;
	if (bpf_probe_read_user(to, size, (void *)(address + start)))
		*state = 0;
}

static __always_inline u32 new_number(u32 place)
{
	u32 *numbers = bpf_map_lookup_elem(&python_numbers, &place);
	u32 cpu = bpf_get_smp_processor_id();

	if (!numbers || *numbers >= 1 << 16 || cpu >= 1 << 10)
		return NO_CODE;
	// 16 bits of count, 10 of the CPU, 2 of the place
	return (*numbers)++ << 12 | cpu << 2 | (place & 3);
}

// A number for a code object that has none; its names go to user space before any sample does.
static __always_inline u32 introduce_code(u32 place, struct python_process *layout,
					  struct code_key *key, struct python_stats *st)
{
	struct python_code *record;
	u32 number;

	record = bpf_ringbuf_reserve(&python_names, sizeof(*record), 0);
	if (!record) {
		st->python_names_lost++;
		return NO_CODE;
	}
	number = new_number(place);
	if (number == NO_CODE || bpf_map_update_elem(&python_codes, key, &number, BPF_NOEXIST)) {
		bpf_ringbuf_discard(record, BPF_RB_NO_WAKEUP);
		return NO_CODE;
	}
	__builtin_memcpy(&record->key, key, sizeof(*key));
	record->lines = user_word(key->code + layout->code_lines);
	record->number = number;
	record->pad = 0;
	read_string(layout, key->name, &record->name_state, &record->name_length, record->name,
		    NAME_BYTES);
	read_string(layout, key->filename, &record->path_state, &record->path_length,
		    record->path, PATH_BYTES);
	bpf_ringbuf_submit(record, 0);
	return number;
}

// The number of the code object at an address.
__noinline u32 code_number(u32 place, u32 process, u64 code)
{
	struct python_process *layout = bpf_map_lookup_elem(&pythons, &process);
	struct python_stats *st = bpf_map_lookup_elem(&python_stats, &place);
	struct code_key key = {};
	u32 *known, number;
	u64 plain;

	if (!layout || !st)
		return NO_CODE;
	key.generation = layout->generation;
	key.code = code;
	key.name = user_word(code + layout->code_name);
	key.filename = user_word(code + layout->code_filename);
	key.first_line = user_half(code + layout->code_first_line);
	plain = key.name;
	if (layout->code_plain_name != layout->code_name)
		plain = user_word(code + layout->code_plain_name);
	key.hash = user_word(plain + layout->string_hash);
	known = bpf_map_lookup_elem(&python_codes, &key);
	if (known)
		return *known;
	number = introduce_code(place, layout, &key, st);
	if (number == NO_CODE) { // another CPU may have been first
		known = bpf_map_lookup_elem(&python_codes, &key);
		if (known)
			return *known;
		st->python_unnamed++;
	}
	return number;
}

static __always_inline u64 instruction_of(struct python_process *layout, u64 frame, u64 code)
{
	u64 at = frame + layout->frame_instruction;

	if (!python_lines)
		return 0;
	if (layout->style == EVERY_FRAME)
		return user_half(at) & INSTRUCTION_MASK;
	return (user_word(at) - code - layout->code_bytes) & INSTRUCTION_MASK;
}

// Keeps the frame that comes next; 0: there is none.
__noinline int python_step(u32 place, u32 process)
{
	struct python_walk *walk = bpf_map_lookup_elem(&python_walks, &place);
	struct python_process *layout = bpf_map_lookup_elem(&pythons, &process);
	u64 frame, code, previous, word;
	u32 depth, number;
	u8 owner = 0;

	if (!walk || !layout)
		return 0;
	depth = walk->depth;
	frame = walk->frame;
	OPAQUE(depth);
	if (!frame || depth >= PYTHON_FRAMES)
		return 0;
	if (bpf_probe_read_user(&previous, sizeof(previous),
				(void *)(frame + layout->frame_previous))) {
		walk->is_cut = 1;
		return 0;
	}
	walk->frame = previous;
	if (layout->style != EVERY_FRAME)
		bpf_probe_read_user(&owner, sizeof(owner), (void *)(frame + layout->frame_owner));
	if (layout->style == SHIM_FRAMES && owner >= SHIM) {
		u32 last = depth - 1;

		OPAQUE(last);
		if (last < PYTHON_FRAMES)
			walk->words[last] |= PYTHON_ENTRY;
		return 1;
	}
	code = user_word(frame + layout->frame_code) & ~STACK_REF_TAG;
	number = code_number(place, process, code);
	word = PYTHON_TAG | (u64)number << CODE_SHIFT | instruction_of(layout, frame, code);
	if (layout->style == EVERY_FRAME || !previous ||
	    (layout->style == ENTRY_FLAG && owner == 1))
		word |= PYTHON_ENTRY;
	walk->words[depth] = word;
	walk->depth = depth + 1;
	return 1;
}

// A number of frames; 0: there are no more.
__noinline int take_python_steps(u32 place, u32 process)
{
	int more = 1;

#pragma clang loop unroll(disable)
	for (u32 taken = 0; taken < PYTHON_STRIDE; taken++) {
		OPAQUE(taken);
		more = python_step(place, process);
		if (!more)
			break;
	}
	return more;
}

// The thread state of the current thread; 0: Python does not know it.
static __always_inline u64 thread_state(struct python_process *layout)
{
	u64 pointer = 0, slot, state;

	if (!fsbase_at)
		return 0;
	bpf_probe_read_kernel(&pointer, sizeof(pointer),
			      (void *)(bpf_get_current_task() + fsbase_at));
	slot = pointer + (s64)layout->slot;
	if (layout->is_indirect)
		slot = user_word(slot) + layout->slot_inner;
	state = user_word(slot);
	if (!state || user_word(state + layout->thread_id) != pointer)
		return 0;
	return state;
}

// Reads the Python frames of the current task; the walk at `place` has them.
__noinline int walk_python(u32 place, u32 process, u64 identity)
{
	struct python_walk *walk = bpf_map_lookup_elem(&python_walks, &place);
	struct python_process *layout = bpf_map_lookup_elem(&pythons, &process);
	struct python_stats *st = bpf_map_lookup_elem(&python_stats, &place);
	u64 state;

	if (!walk)
		return 0;
	walk->depth = 0;
	walk->is_cut = 0;
	if (!layout || !st || (layout->identity && layout->identity != identity))
		return 0;
	state = thread_state(layout);
	if (!state)
		return 0;
	walk->frame = user_word(state + layout->frame);
	if (layout->has_current && walk->frame)
		walk->frame = user_word(walk->frame + layout->current);
	// a shim takes a turn, too
#pragma clang loop unroll(disable)
	for (u32 taken = 0; taken < 2 * PYTHON_FRAMES; taken += PYTHON_STRIDE) {
		OPAQUE(taken);
		if (!take_python_steps(place, process))
			break;
	}
	if (!walk->depth)
		return 0;
	st->python_stacks++;
	st->python_frames += walk->depth;
	st->python_cut += walk->is_cut;
	st->python_too_deep += walk->frame != 0 && !walk->is_cut;
	return walk->depth;
}

#endif
