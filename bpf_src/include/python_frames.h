// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The Python frames of the current thread, read by itself: nothing changes while they are read.
// See docs/design/0011-python-frames.md.
//
// A frame is one word that is no address: tag, whether the evaluation loop begins there, the number
// of its code object, and what it executes. Names are read once, when a code object is first met,
// and go to user space through `python_names`. All memory belongs to the process and may hold
// anything: every loop is bounded, and a frame that cannot be read ends the walk.
//
// A code object that cannot be read, as the kernel moves its memory in this moment, is left to user
// space, which can wait for it, along with what proves that it reads the same: co_version (3.12), a
// number that only grows. What is there later, and has a number that was given out before the
// sample, was there at the sample. Before 3.12 nothing proves it, and such frames have no name.
#ifndef PYTHON_FRAMES_H
#define PYTHON_FRAMES_H

#include "purebpf.h"

#define PYTHON_FRAMES 96
#define PYTHON_STRIDE 16 // frames that one of two loops is for: see unwind_walk.h
#define PYTHON_TAG (0x2A5ull << 53)
#define PYTHON_ENTRY (1ull << 52)
#define CODE_SHIFT 24
#define NO_CODE 0xFFFFFFF // of 28 bits: its names have no room, or it cannot be read
#define NO_FRAME 0xFFFFFFD // in place of the frames that could not be read
#define INSTRUCTION_MASK 0xFFFFFF
#define NO_INSTRUCTION 0x7FFFFF // behind all of a code object
#define NAME_BYTES 256
#define PATH_BYTES 256
#define SHIM 3 // FRAME_OWNED_BY_CSTACK (3.12), _INTERPRETER (3.14): no code, below the first of a call
#define STACK_REF_TAG 7ull // bits of a _PyStackRef (3.14) that are not of the object's address
#define MOST_STRING (1u << 20)
#define MOST_NUMBER (1u << 27) // an even number of 28 bits; odd ones are user space's
#define FIELD_BYTES 128 // of a frame, and of a code object, that are read at once
#define TEXT_WORDS 12 // of a string behind its type, that are read at once
#define HEADER_BYTES 24 // of those, before its characters
#define FEW_BYTES 40 // of its characters, however long its header is
#define ENDING_BYTES 64 // of a longer one
#define TEXT_BYTES (NAME_BYTES + PATH_BYTES)
#define TABLE_BYTES 1024 // of a table of lines, that go to user space
#define MOST_CALLERS 64 // thread states of the main interpreter, the newest, that are looked at
#define TABLE_PARTS 8 // of so many bytes, that tell a table from others

#ifndef PYTHON_PLACES
#define PYTHON_PLACES 1
#endif

enum python_style {
	EVERY_FRAME = 0, // up to 3.10, each frame has its own call of the loop
	ENTRY_FLAG = 1,	 // 3.11
	SHIM_FRAMES = 2, // 3.12
};

// Offsets as in purebpf/runtimes/cpython/layout.py; those that a version does not have are 0. Those of a code
// object are from `code_start`.
struct python_process {
	u64 identity;	 // of the program that the process executed; 0: any
	u64 generation;	 // of this entry: tells code objects of processes apart
	__s32 slot;	 // from pthread_self() to the thread state's, or to a pointer before it
	u32 slot_inner;	 // from there, if it is one
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
	__u16 code_size; // to read for all of this
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
	u64 gil; // its address; 0: in `gil_in_interpreter` of the interpreter, a pointer to it
	u64 main_interpreter; // whose threads may run another interpreter; 0: not before 3.12
	__u16 thread_next;
	__u16 pointer_distance; // from pthread_self() to the thread pointer; 0 on x86_64
	__u16 frame_tlbc;
	__u16 code_tlbc; // 0: all threads have the same code units
	u32 newest; // version of the code objects that were met, in the main interpreter
	u8 string_shift;
	u8 pad[3];
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
	u32 name_state; // PyASCIIObject.state
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
	u64 code; // of the last frame, and its number
	u64 file; // the last path of a code object without a version, and its identity
	u64 file_identity;
	u32 number;
	u32 newest; // as in `layout`, with what this walk has met
	u32 is_main; // versions of other interpreters do not tell
	u32 is_unread; // a text, or a table of lines, of `code_fields`
	u32 version; // of the same
	u32 task_depth; // frames up to the first one of the task that runs; 0: not met
	u64 state; // of the thread
	u64 task_frame; // the address of that frame: see python_tasks.h
	struct code_key code_key; // here, as 6.1 lets all functions of a chain have 512 bytes
	struct function_key function_key;
	u32 least; // version of what is deferred
	u32 most;
	struct python_process layout; // of this process
	u64 frame_fields[FIELD_BYTES / 8 + 1]; // a word more: fields are read as words
	u64 code_fields[FIELD_BYTES / 8 + 1];
	u64 text[TEXT_WORDS];
	u64 words[PYTHON_FRAMES];
};

struct python_stats {
	u64 python_stacks; // samples with Python frames
	u64 python_frames;
	u64 python_cut;	      // a frame, or what leads to it, could not be read
	u64 python_too_deep;  // more than PYTHON_FRAMES
	u64 python_unnamed;   // frames of code objects whose names could not be sent
	u64 python_deferred;  // frames of code objects that user space has to read
	u64 python_names_lost; // `python_names` had no room
	u64 python_awaited;    // stacks with tasks that await the one that runs
};

CONFIG bool python = false;
CONFIG bool python_lines = false;
u32 thread_pointer_at = 0; // in struct task_struct; user space looks it up
u32 python_number = 0; // of the next function

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

// What goes in first must be mixed itself, into 0: else it meets the next word in an exclusive or.
static __always_inline u64 mix(u64 hash, u64 word)
{
	hash = (hash ^ word) * 0xff51afd7ed558ccdULL;
	return hash ^ hash >> 32;
}

// A word at an offset in bytes.
static __always_inline u64 field(u64 *fields, u32 offset)
{
	u8 *bytes = (u8 *)fields;

	offset &= FIELD_BYTES - 1;
	OPAQUE(offset);
	return *(u64 *)(bytes + (offset & (FIELD_BYTES - 1)));
}

// A word that tells what comes next, 0: nothing. What cannot be read cuts the walk; without a branch,
// which verifiers follow again and again in loops.
static __always_inline u64 link_word(struct python_walk *walk, u64 address)
{
	u64 word = 0;

	walk->is_cut |= bpf_probe_read_user(&word, sizeof(word), (void *)address);
	return word;
}

// Fills the fields of a frame, or of a code object; false: it could not be read.
static __always_inline bool read_fields(u64 *to, u64 size, u64 address)
{
	OPAQUE(size); // as 64 bits: Linux 6.1 forgets what a comparison of 32 says of the rest
	if (size > FIELD_BYTES)
		size = FIELD_BYTES;
	return !bpf_probe_read_user(to, size, (void *)address);
}

// Of what a string says: its length, its first bytes and, where they are not all, its last ones.
// The text of a place is overwritten.
__noinline u64 text_identity(u32 place, u64 address)
{
	struct python_walk *walk = bpf_map_lookup_elem(&python_walks, &place);
	struct python_process *layout;
	u64 from, state, length, start, bytes, hash, whole = sizeof(walk->text);

	if (!walk)
		return 0;
	layout = &walk->layout;
	from = layout->string_length;
	if (bpf_probe_read_user(walk->text, whole, (void *)(address + from))) {
		whole = 0; // near the end of a mapping
		walk->is_unread |= bpf_probe_read_user(walk->text, HEADER_BYTES,
						       (void *)(address + from));
	}
	length = walk->text[0];
	if (length > MOST_STRING)
		length = MOST_STRING;
	state = field(walk->text, (layout->string_state - from) & 31) >>
		(layout->string_shift & 31);
	start = state & 1 << 6 ? layout->ascii_size : layout->compact_size;
	bytes = length * (state >> 2 & 7);
	hash = mix(0, length << 3 | (state >> 2 & 7));
	if (!whole) {
		u64 *to = &walk->text[(start - from) >> 3 & 7], size = bytes;

		OPAQUE(size);
		if (size > FEW_BYTES)
			size = FEW_BYTES;
		walk->is_unread |=
			bpf_probe_read_user(to, size, (void *)(address + start));
		whole = start - from + FEW_BYTES;
	}
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < TEXT_WORDS; i++) {
		u64 at = ((start - from) >> 3) + i, left = bytes - i * 8, word;

		OPAQUE(i);
		if (i * 8 >= bytes || at >= TEXT_WORDS)
			break;
		word = walk->text[at];
		if (left < 8)
			word &= (1ull << left * 8) - 1;
		hash = mix(hash, word);
	}
	if (start - from + bytes <= whole)
		return hash;
	walk->is_unread |= bpf_probe_read_user(walk->text, ENDING_BYTES,
					       (void *)(address + start + bytes - ENDING_BYTES));
#pragma clang loop unroll(full)
	for (u32 i = 0; i < ENDING_BYTES / 8; i++)
		hash = mix(hash, walk->text[i]);
	return hash;
}

// What tells the code object of `code_fields` from those that had its memory before.
static __always_inline u64 code_identity(u32 place, struct python_walk *walk)
{
	struct python_process *layout = &walk->layout;
	u64 name = field(walk->code_fields, layout->code_name);
	u64 file = field(walk->code_fields, layout->code_filename);
	u64 line = (u32)field(walk->code_fields, layout->code_first_line);
	u64 version = 0;

	if (layout->has_version)
		version = (u32)field(walk->code_fields, layout->code_version);
	if (!version) { // or the numbers have run out, after 2^32
		if (file != walk->file) {
			walk->file = file;
			walk->file_identity = text_identity(place, file);
		}
		version = mix(text_identity(place, name), walk->file_identity);
	}
	return mix(mix(mix(mix(0, version), name), file), line);
}

// Whether PyASCIIObject.state is that of a string which was read: compact, of kind 1, 2 or 4. 1 or 0.
static __always_inline u32 is_text(u32 state)
{
	return state >> 5 & 0x16u >> (state >> 2 & 7) & 1;
}

// A string's state, length and first bytes; how many these are.
static __always_inline u64 read_string(struct python_process *layout, u64 address, u32 *state,
				       u32 *length, u8 *to, u32 room)
{
	u64 characters = user_word(address + layout->string_length);
	u64 size; // compared as 64 bits, see read_fields()
	u32 kind, start;

	*state = user_half(address + layout->string_state) >> (layout->string_shift & 31);
	*length = characters < MOST_STRING ? characters : MOST_STRING;
	kind = *state >> 2 & 7;
	size = (u64)*length * kind;
	start = *state & 1 << 6 ? layout->ascii_size : layout->compact_size;
	OPAQUE(size);
	if (size > room)
		size = room;
	if (!bpf_probe_read_user(to, size, (void *)(address + start)))
		return size;
	*state = 0;
	return 0;
}

// Of the text of the record in a place.
__noinline u64 hash_text(u32 place)
{
	struct python_code *record = bpf_map_lookup_elem(&python_records, &place);
	u64 *words, hash;

	if (!record)
		return 0;
	words = (u64 *)record->text;
	hash = mix(0, (u64)record->name_length << 32 | record->path_length);
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < TEXT_BYTES / 8; i++) {
		OPAQUE(i);
		if (i >= TEXT_BYTES / 8 || !words[i])
			break;
		hash = mix(hash, words[i]);
	}
	return hash;
}

// Goes on with a hash of bytes of the process; the table of the record in a place is overwritten.
__noinline u64 hash_bytes(u32 place, u64 hash, u64 address, u64 size)
{
	struct python_code *record = bpf_map_lookup_elem(&python_records, &place);
	u64 *words;

	if (!record)
		return 0;
	words = (u64 *)(record->text + TEXT_BYTES);
	if (size > TABLE_BYTES)
		size = TABLE_BYTES;
	OPAQUE(size);
	if (size > TABLE_BYTES || bpf_probe_read_user(words, size, (void *)address))
		return 0;
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < TABLE_BYTES / 8; i++) {
		u64 left = size - i * 8, word;

		OPAQUE(i);
		if (i >= TABLE_BYTES / 8 || i * 8 >= size)
			break;
		word = words[i];
		if (left < 8)
			word &= (1ull << left * 8) - 1;
		hash = mix(hash, word);
	}
	return hash;
}

// Of a table of lines: of what is compiled from the same line, each has its own. A long one by parts
// of it, evenly spaced from its beginning to its end.
static __always_inline void hash_lines(u32 place, struct python_walk *walk,
				       struct python_code *record)
{
	u64 size = user_word(record->lines + walk->layout.bytes_length);
	u64 start = record->lines + walk->layout.bytes_data, step = TABLE_BYTES;
	u64 hash = mix(0, size);

	if (size > TABLE_PARTS * TABLE_BYTES)
		step = (size - TABLE_BYTES) / (TABLE_PARTS - 1);
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < TABLE_PARTS; i++) {
		OPAQUE(i);
		if (i * step >= size)
			break;
		hash = hash_bytes(place, hash, start + i * step, size - i * step);
	}
	record->lines_hash = hash;
	record->lines_size = size < MOST_STRING ? size : MOST_STRING;
}

// Fills the record of a place from `code_fields`; how many bytes it has.
__noinline u32 fill_record(u32 place)
{
	struct python_walk *walk = bpf_map_lookup_elem(&python_walks, &place);
	struct python_code *record = bpf_map_lookup_elem(&python_records, &place);
	struct python_process *layout;
	u64 name_size, path_size;

	if (!walk || !record)
		return 0;
	layout = &walk->layout;
	record->generation = layout->generation;
	record->name = field(walk->code_fields, layout->code_name);
	record->path = field(walk->code_fields, layout->code_filename);
	record->lines = field(walk->code_fields, layout->code_lines);
	record->code = 0;
	record->first_line = field(walk->code_fields, layout->code_first_line);
	record->lines_size = 0;
	__builtin_memset(record->text, 0, TEXT_BYTES);
	name_size = read_string(layout, record->name, &record->name_state, &record->name_length,
				record->text, NAME_BYTES);
	OPAQUE(name_size);
	if (name_size > NAME_BYTES)
		return 0;
	path_size = read_string(layout, record->path, &record->path_state, &record->path_length,
				record->text + name_size, PATH_BYTES);
	return __builtin_offsetof(struct python_code, text) + name_size + path_size;
}

// Puts the table of lines behind the strings of a record of so many bytes; how many it has then.
__noinline u32 add_table(u32 place, u64 size)
{
	struct python_walk *walk = bpf_map_lookup_elem(&python_walks, &place);
	struct python_code *record = bpf_map_lookup_elem(&python_records, &place);
	u64 at = size - __builtin_offsetof(struct python_code, text), room;

	if (!walk || !record)
		return 0;
	room = record->lines_size;
	OPAQUE(at);
	if (at > TEXT_BYTES)
		return 0;
	OPAQUE(room);
	if (room > TABLE_BYTES)
		return 0;
	if (bpf_probe_read_user(record->text + at, room,
				(void *)(record->lines + walk->layout.bytes_data)))
		return size;
	return size + room;
}

// Sends the record of a place, of so many bytes, to user space; its number, or NO_CODE.
__noinline u32 send_record(u32 place, u64 size)
{
	struct python_code *record = bpf_map_lookup_elem(&python_records, &place);
	struct python_stats *st = bpf_map_lookup_elem(&python_stats, &place);

	if (!record || !st)
		return NO_CODE;
	OPAQUE(size);
	if (size > sizeof(*record))
		size = sizeof(*record);
	if (!bpf_ringbuf_output(&python_names, record, size, 0))
		return record->number;
	st->python_names_lost++;
	return NO_CODE;
}

// For a function; user space removes this where the kernel has no such instruction.
__noinline u32 new_number(void)
{
	u32 number = __sync_fetch_and_add(&python_number, 1); // Linux 5.12

	if (number < MOST_NUMBER - 1)
		return number << 1;
	__sync_fetch_and_sub(&python_number, 1);
	return NO_CODE;
}

// A number for a code object that user space has to read, of a version that is known as far. It is
// told each time: another one may have that memory by then.
__noinline u32 defer_code(u32 place)
{
	struct python_walk *walk = bpf_map_lookup_elem(&python_walks, &place);
	struct python_code *record = bpf_map_lookup_elem(&python_records, &place);
	u32 *known, number;

	if (!python || !walk || !record)
		return NO_CODE;
	walk->function_key.generation = walk->layout.generation;
	walk->function_key.hash = mix(mix(0, ~walk->code_key.code),
				      (u64)walk->least << 32 | walk->most);
	known = bpf_map_lookup_elem(&python_functions, &walk->function_key);
	number = known ? *known : new_number();
	if (number == NO_CODE)
		return NO_CODE;
	__builtin_memset(record, 0, __builtin_offsetof(struct python_code, text));
	record->generation = walk->layout.generation;
	record->number = number;
	record->code = walk->code_key.code;
	record->least = walk->least;
	record->most = walk->most;
	if (!known)
		bpf_map_update_elem(&python_functions, &walk->function_key, &number, BPF_ANY);
	return send_record(place, __builtin_offsetof(struct python_code, text));
}

// The same, counted.
static __always_inline u32 defer(struct python_stats *st, u32 place)
{
	u32 number = defer_code(place);

	if (number == NO_CODE)
		st->python_unnamed++;
	else
		st->python_deferred++;
	return number;
}

// A number for the code object of `code_fields`. The names of a function that is new go to user
// space before any sample does.
__noinline u32 introduce_code(u32 place)
{
	struct python_walk *walk = bpf_map_lookup_elem(&python_walks, &place);
	struct python_code *record = bpf_map_lookup_elem(&python_records, &place);
	struct python_stats *st = bpf_map_lookup_elem(&python_stats, &place);
	struct function_key *key;
	u32 *known, number;
	u64 size;

	if (!python || !walk || !record || !st)
		return NO_CODE;
	size = fill_record(place);
	if (!(is_text(record->name_state) & is_text(record->path_state))) {
		walk->is_unread = 1;
		return NO_CODE;
	}
	key = &walk->function_key;
	key->generation = record->generation;
	key->hash = mix(hash_text(place), record->first_line);
	if (python_lines) {
		hash_lines(place, walk, record);
		key->hash = mix(key->hash, record->lines_hash);
		if (!record->lines_hash && walk->layout.has_version) {
			walk->is_unread = 1;
			return NO_CODE;
		}
	}
	known = bpf_map_lookup_elem(&python_functions, key);
	if (known)
		return *known;
	number = new_number();
	if (number == NO_CODE)
		return NO_CODE;
	record->number = number;
	if (record->lines_size <= TABLE_BYTES)
		size = add_table(place, size);
	number = send_record(place, size);
	if (number != NO_CODE)
		bpf_map_update_elem(&python_functions, key, &number, BPF_ANY);
	return number;
}

// The number of the code object at an address.
__noinline u32 code_number(u32 place, u64 code)
{
	struct python_walk *walk = bpf_map_lookup_elem(&python_walks, &place);
	struct python_stats *st = bpf_map_lookup_elem(&python_stats, &place);
	u32 *known, number;

	if (!walk || !st)
		return NO_CODE;
	walk->code_key.generation = walk->layout.generation;
	walk->code_key.code = code;
	walk->least = 1;
	walk->most = walk->is_main ? walk->newest : 0;
	if (!read_fields(walk->code_fields, walk->layout.code_size, code + walk->layout.code_start))
		return defer(st, place);
	walk->version = 0;
	if (walk->layout.has_version)
		walk->version = field(walk->code_fields, walk->layout.code_version);
	walk->least = walk->version;
	walk->most = walk->version;
	walk->is_unread = 0;
	walk->code_key.identity = code_identity(place, walk);
	known = bpf_map_lookup_elem(&python_codes, &walk->code_key);
	if (known && !walk->is_unread) {
		number = *known;
	} else {
		number = NO_CODE;
		if (!walk->is_unread)
			number = introduce_code(place);
		if (walk->is_unread)
			return defer(st, place);
		if (number == NO_CODE) {
			st->python_unnamed++;
			return NO_CODE;
		}
		bpf_map_update_elem(&python_codes, &walk->code_key, &number, BPF_ANY);
	}
	if (walk->version > walk->newest)
		walk->newest = walk->version;
	return number;
}

static __always_inline u64 instruction_of(struct python_walk *walk, u64 code)
{
	u64 at = field(walk->frame_fields, walk->layout.frame_instruction), start;

	if (!python_lines)
		return 0;
	if (walk->layout.style == EVERY_FRAME)
		return at & INSTRUCTION_MASK;
	start = code + walk->layout.code_bytes;
	if (walk->layout.code_tlbc) {
		u64 table = user_word(code + walk->layout.code_tlbc);
		u64 index = (u32)field(walk->frame_fields, walk->layout.frame_tlbc);

		start = user_word(table + sizeof(u64) + index * sizeof(u64)); // behind its size
		if (!start)
			return NO_INSTRUCTION;
	}
	return (at - start) & INSTRUCTION_MASK;
}

#include "python_tasks.h"

// Keeps the frame that comes next; 0: there is none.
__noinline int python_step(u32 place)
{
	struct python_walk *walk = bpf_map_lookup_elem(&python_walks, &place);
	struct python_process *layout;
	u64 frame, code, word;
	u32 depth;
	u8 owner = 0;

	if (!walk)
		return 0;
	layout = &walk->layout;
	depth = walk->depth;
	frame = walk->frame;
	OPAQUE(depth);
	if (!frame || depth >= PYTHON_FRAMES)
		return 0;
	if (!read_fields(walk->frame_fields, layout->frame_size, frame)) {
		walk->is_cut = 1;
		return 0;
	}
	walk->frame = field(walk->frame_fields, layout->frame_previous);
	if (layout->style != EVERY_FRAME)
		owner = field(walk->frame_fields, layout->frame_owner);
	if (layout->style == SHIM_FRAMES && owner >= SHIM) {
		u32 last = depth - 1;

		OPAQUE(last);
		if (last < PYTHON_FRAMES)
			walk->words[last] |= PYTHON_ENTRY;
		return 1;
	}
	code = field(walk->frame_fields, layout->frame_code) & ~STACK_REF_TAG;
	if (code != walk->code) { // else the function calls itself
		walk->number = code_number(place, code);
		walk->code = code;
	}
	word = PYTHON_TAG | (u64)walk->number << CODE_SHIFT | instruction_of(walk, code);
	if (layout->style == EVERY_FRAME || !walk->frame ||
	    (layout->style == ENTRY_FLAG && owner == 1))
		word |= PYTHON_ENTRY;
	walk->words[depth] = word;
	walk->depth = depth + 1;
	if (python_async && frame == walk->task_frame)
		walk->task_depth = depth + 1;
	return 1;
}

// A number of frames; 0: there are no more.
__noinline int take_python_steps(u32 place)
{
	int more = 1;

#pragma clang loop unroll(disable)
	for (u32 taken = 0; taken < PYTHON_STRIDE; taken++) {
		OPAQUE(taken);
		more = python_step(place);
		if (!more)
			break;
	}
	return more;
}

// The thread state of the current thread; 0: Python does not know it. False: it could not be read.
static __always_inline bool read_thread_state(struct python_process *layout, u64 *state)
{
	u64 pointer = 0, slot, owner = 0;

	*state = 0;
	if (!thread_pointer_at)
		return true;
	bpf_probe_read_kernel(&pointer, sizeof(pointer),
			      (void *)(bpf_get_current_task() + thread_pointer_at));
	pointer -= layout->pointer_distance;
	slot = pointer + (s64)layout->slot;
	if (layout->is_indirect) {
		u64 block = 0;

		if (bpf_probe_read_user(&block, sizeof(block), (void *)slot))
			return false;
		if (!block)
			return true;
		slot = block + layout->slot_inner;
	}
	if (bpf_probe_read_user(state, sizeof(*state), (void *)slot))
		return false;
	if (!*state)
		return true;
	if (bpf_probe_read_user(&owner, sizeof(owner), (void *)(*state + layout->thread_id))) {
		*state = 0;
		return false;
	}
	if (owner != pointer)
		*state = 0;
	return true;
}

static __always_inline u64 thread_state(struct python_process *layout)
{
	u64 state;

	read_thread_state(layout, &state);
	return state;
}

// The state of the current thread in the main interpreter, when it runs another one: it called that
// one, and waits for it. 0: not found, or the main interpreter runs.
__noinline u64 calling_state(u32 place, u64 state)
{
	struct python_walk *walk = bpf_map_lookup_elem(&python_walks, &place);
	struct python_process *layout;
	u64 pointer, other;

	if (!walk)
		return 0;
	layout = &walk->layout;
	if (!layout->main_interpreter || walk->is_main)
		return 0;
	pointer = link_word(walk, state + layout->thread_id);
	other = link_word(walk, layout->main_interpreter + layout->threads);
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < MOST_CALLERS; i++) {
		OPAQUE(i);
		if (!other)
			return 0;
		if (user_word(other + layout->thread_id) == pointer)
			return other;
		other = user_word(other + layout->thread_next);
	}
	return 0;
}

// Adds the frames of a thread state to the walk at a place.
__noinline int walk_state(u32 place, u64 state)
{
	struct python_walk *walk = bpf_map_lookup_elem(&python_walks, &place);

	if (!walk)
		return 0;
	walk->frame = link_word(walk, state + walk->layout.frame);
	if (walk->layout.has_current && walk->frame)
		walk->frame = link_word(walk, walk->frame + walk->layout.current);
	// a shim takes a turn, too
#pragma clang loop unroll(disable)
	for (u32 taken = 0; taken < 2 * PYTHON_FRAMES; taken += PYTHON_STRIDE) {
		OPAQUE(taken);
		if (!take_python_steps(place))
			break;
	}
	return 0;
}

// In place of the frames that could not be read.
static __always_inline void mark_cut(struct python_walk *walk)
{
	u32 depth = walk->depth;

	OPAQUE(depth);
	if (depth >= PYTHON_FRAMES)
		return;
	walk->words[depth] = PYTHON_TAG | PYTHON_ENTRY | (u64)NO_FRAME << CODE_SHIFT;
	walk->depth = depth + 1;
}

// The thread state of the current thread, and whose it is: into the walk at a place.
__noinline int find_state(u32 place)
{
	struct python_walk *walk = bpf_map_lookup_elem(&python_walks, &place);
	struct python_process *layout;
	u64 state;

	if (!walk)
		return 0;
	layout = &walk->layout;
	walk->is_cut = !read_thread_state(layout, &state);
	walk->is_main = state && layout->main_interpreter &&
			link_word(walk, state + layout->thread_interpreter) ==
				layout->main_interpreter;
	walk->state = state;
	return 0;
}

// A function of its own, or part of the calling one: a chain of calls has eight frames at most.
#ifdef INLINE_WALK_OF_PYTHON
#define WALK_OF_PYTHON static __always_inline
#else
#define WALK_OF_PYTHON __noinline
#endif

// Reads the Python frames of the current task; the walk at `place` has them.
WALK_OF_PYTHON int walk_python(u32 place, u32 process, u64 identity)
{
	struct python_walk *walk = bpf_map_lookup_elem(&python_walks, &place);
	struct python_process *layout = bpf_map_lookup_elem(&pythons, &process);
	struct python_stats *st = bpf_map_lookup_elem(&python_stats, &place);
	u32 is_called = 0;

	if (!walk)
		return 0;
	walk->depth = 0;
	if (!layout || !st || (layout->identity && layout->identity != identity))
		return 0;
	walk->layout = *layout;
	walk->code = 0;
	walk->file = 0;
	walk->number = NO_CODE;
	walk->newest = layout->newest;
	walk->frame = 0;
	find_state(place);
	if (python_async)
		find_task(place, process, walk->state);
	if (walk->state)
		walk_state(place, walk->state);
	if (walk->state && !walk->frame && !walk->is_cut && !walk->is_main) {
		walk->state = calling_state(place, walk->state);
		walk->newest = layout->newest;
		walk->is_main = is_called = walk->state != 0;
		if (walk->state)
			walk_state(place, walk->state);
	}
	if (walk->is_main && walk->newest > layout->newest)
		layout->newest = walk->newest;
	if (!walk->depth && !walk->is_cut)
		return 0;
	if (python_async) {
		if (is_called) // tasks are those of the interpreter that was called
			walk->is_main = 0;
		walk_tasks(place);
	}
	st->python_stacks += walk->depth != 0;
	st->python_frames += walk->depth;
	st->python_cut += walk->is_cut && walk->depth;
	st->python_too_deep += walk->frame != 0 && !walk->is_cut;
	if (walk->is_cut)
		mark_cut(walk);
	return walk->depth;
}

#endif
