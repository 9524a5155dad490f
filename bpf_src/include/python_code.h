// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Numbers of code objects. Names are read once, when a code object is first met, and go to user space
// through `python_names`.
//
// A code object that cannot be read, as the kernel moves its memory in this moment, is left to user
// space, which can wait for it, along with what proves that it reads the same: co_version (3.12), a
// number that only grows. What is there later, and has a number that was given out before the
// sample, was there at the sample. Before 3.12 nothing proves it, and such frames have no name.
#ifndef PYTHON_CODE_H
#define PYTHON_CODE_H

#include "python_text.h"

#define MOST_NUMBER (1u << 27) // an even number of 28 bits; odd ones are user space's
#define INSTRUCTION_MASK 0xFFFFFF
#define NO_INSTRUCTION 0x7FFFFF // behind all of a code object

#define PHP_KIND 0 // words of `code_fields` of a function of PHP
#define PHP_NAME 1
#define PHP_CLASS_NAME 2
#define PHP_FILE 3 // and its line
#define PHP_INTERNAL 1
#define PHP_NAME_IN_CLASS 8

// Fills `code_fields` for a function of PHP: strings, as a code object has them. False: it is none.
static __always_inline bool read_php_function(struct python_walk *walk, u64 function)
{
	u64 *fields = walk->code_fields;
	u8 kind;

	if (bpf_probe_read_user(fields, 24, (void *)function))
		return false;
	fields[PHP_FILE] = 0;
	fields[PHP_FILE + 1] = 0;
	kind = fields[PHP_KIND];
	if (kind != PHP_INTERNAL && kind != 2 && kind != 4)
		return false;
	if (kind != PHP_INTERNAL &&
	    bpf_probe_read_user(&fields[PHP_FILE], 16,
				(void *)(function + walk->layout.function_file)))
		return false;
	if (!fields[PHP_NAME]) // code of a file: its class is that of the function that includes it
		fields[PHP_CLASS_NAME] = 0;
	if (!fields[PHP_CLASS_NAME])
		return true;
	return read_word(&fields[PHP_CLASS_NAME], fields[PHP_CLASS_NAME] + PHP_NAME_IN_CLASS);
}

#define RUBY_TYPE 0x1F // of an object
#define RUBY_STRING 5
#define RUBY_NOT_EMBEDDED (1u << 13)
#define RUBY_LENGTH_SHIFT 14 // of one in the object, up to 3.1
#define RUBY_LENGTH_MASK 0x1F
#define RUBY_SIZE 5 // in the high half
#define RUBY_START 6
#define RUBY_LINES 7
#define RUBY_LINES_SIZE 9
#define RUBY_INDEX 10
#define RUBY_IS_METHOD 1 // a bit of the address of a definition, which is even
#define RUBY_IMEMO 0x1A
#define RUBY_ISEQ_KIND 7
#define RUBY_ARRAY 7
#define RUBY_EMBEDDED (1u << 13)
#define RUBY_ID 32    // in a definition
#define RUBY_PLACE 64 // in the content of code: file, two names, and line

// The kind of an object of the interpreter, by its flags; 0 of a program's.
static __always_inline u32 ruby_kind(u64 flags)
{
	return (flags & RUBY_TYPE) == RUBY_IMEMO ? flags >> 12 & 0xF : 0;
}

// The string of a path: that object, or the first element of an array.
static __always_inline u64 ruby_path(u64 object)
{
	u64 flags = user_word(object);

	if ((flags & RUBY_TYPE) != RUBY_ARRAY)
		return object;
	return user_word(flags & RUBY_EMBEDDED ? object + 16 : user_word(object + 32));
}

// Where the text of a string of Ruby is; its length goes into `code_fields`. 0: it is no string.
__noinline u64 ruby_text(u32 place, u64 string, u32 is_file)
{
	struct python_walk *walk = bpf_map_lookup_elem(&python_walks, &place);
	u64 flags, length, at;

	if (!walk)
		return 0;
	if (bpf_probe_read_user(walk->text, 32, (void *)string) ||
	    (walk->text[0] & RUBY_TYPE) != RUBY_STRING) {
		return 0;
	}
	flags = walk->text[0];
	length = walk->text[2];
	at = string + 24;
	if (flags & RUBY_NOT_EMBEDDED) {
		at = walk->text[3];
	} else if (!walk->layout.string_shift) {
		length = flags >> RUBY_LENGTH_SHIFT & RUBY_LENGTH_MASK;
		at = string + 16;
	}
	if (length > MOST_STRING)
		length = MOST_STRING;
	if (is_file)
		walk->code_fields[RUBY_FILE_LENGTH] = length;
	else
		walk->code_fields[RUBY_NAME_LENGTH] = length;
	return at;
}

// Fills `code_fields` for code of Ruby, or for the definition of a method written in C. False: it is
// none.
__noinline int read_ruby_function(u32 place, u64 function)
{
	struct python_walk *walk = bpf_map_lookup_elem(&python_walks, &place);
	u64 *fields, content;

	if (!walk)
		return 0;
	fields = walk->code_fields;
	__builtin_memset(fields, 0, (RUBY_FILE_LENGTH + 1) * sizeof(u64));
	if (function & RUBY_IS_METHOD) {
		if (!read_word(&fields[RUBY_NAME], (function & ~1ull) + RUBY_ID))
			return 0;
		fields[RUBY_KIND] = RUBY_METHOD;
		fields[RUBY_FILE + 1] = fields[RUBY_NAME]; // there are no texts that tell it
		return 1;
	}
	if (bpf_probe_read_user(fields, 24, (void *)function) ||
	    ruby_kind(fields[0]) != RUBY_ISEQ_KIND)
		return 0;
	content = fields[2];
	fields[RUBY_KIND] = 0;
	if (bpf_probe_read_user(&fields[1], 32, (void *)(content + RUBY_PLACE)) ||
	    bpf_probe_read_user(&fields[RUBY_SIZE], 16, (void *)content) ||
	    bpf_probe_read_user(&fields[RUBY_LINES], 32,
				(void *)(content + walk->layout.function_file)))
		return 0;
	content = fields[1];
	fields[RUBY_NAME] = ruby_text(place, fields[3], false);
	fields[2] = 0;
	fields[RUBY_FILE] = ruby_text(place, ruby_path(content), true);
	if (!fields[RUBY_NAME] || !fields[RUBY_FILE])
		return 0;
	fields[RUBY_KIND] = RUBY_CODE;
	return 1;
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
		if (layout->style == PHP_FRAMES)
			version = mix(version,
				      text_identity(place, walk->code_fields[PHP_CLASS_NAME]));
	}
	return mix(mix(mix(mix(0, version), name), file), line);
}

// Looks at a place, whose number is on the stack for the look alone: a chain of eight calls has 512
// bytes of stack.
static __always_inline struct python_walk *walk_at(u32 place)
{
	return bpf_map_lookup_elem(&python_walks, &place);
}

static __always_inline struct python_code *record_at(u32 place)
{
	return bpf_map_lookup_elem(&python_records, &place);
}

// Fills the record of a place from `code_fields`; how many bytes it has.
__noinline u32 fill_record(u32 place)
{
	struct python_walk *walk = walk_at(place);
	struct python_code *record = record_at(place);
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
	if (layout->style == RUBY_FRAMES && walk->code_fields[RUBY_KIND] == RUBY_METHOD) {
		record->name_state = BYTES_OF_PHP;
		record->name_length = 0;
		record->path_state = BYTES_OF_PHP;
		record->path_length = 0;
		return __builtin_offsetof(struct python_code, text);
	}
	name_size = read_string(walk, record->name, &record->name_state, &record->name_length,
				record->text, NAME_BYTES);
	OPAQUE(name_size);
	if (name_size > NAME_BYTES)
		return 0;
	path_size = read_string(walk, record->path, &record->path_state, &record->path_length,
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
	walk->function_key.hash =
		mix(mix(0, ~walk->code_key.code), (u64)walk->least << 32 | walk->most);
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
	if (python_lines || walk->layout.style == PHP_FRAMES) { // of PHP, the name of the class
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
		bpf_map_update_elem(&python_functions, key, &record->number, BPF_ANY);
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
	if (walk->layout.style == PHP_FRAMES) {
		if (!read_php_function(walk, code)) {
			st->python_unnamed++;
			return NO_CODE;
		}
	} else if (walk->layout.style == RUBY_FRAMES) {
		if (!read_ruby_function(place, code)) {
			st->python_unnamed++;
			return NO_CODE;
		}
	} else if (!read_fields(walk->code_fields, walk->layout.code_size,
				code + walk->layout.code_start)) {
		return defer(st, place);
	}
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
		if (walk->is_unread && walk->layout.style < PHP_FRAMES)
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

#endif
