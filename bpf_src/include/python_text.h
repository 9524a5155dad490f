// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Strings and tables of lines of a Python process, and hashes of them.
#ifndef PYTHON_TEXT_H
#define PYTHON_TEXT_H

#include "python_memory.h"

#define MOST_STRING (1u << 20)
#define HEADER_BYTES 24	  // of those, before its characters
#define FEW_BYTES 40	  // of its characters, however long its header is
#define ENDING_BYTES 64	  // of a longer one
#define BYTES_OF_PHP 0x64 // PyASCIIObject.state of a compact string of one byte each
#define TABLE_PARTS 8	  // of so many bytes, that tell a table from others

#define RUBY_KIND 0 // words of `code_fields` of code of Ruby, or of a method written in C
#define RUBY_NAME 1 // of a method, its number
#define RUBY_CODE 1 // kinds
#define RUBY_METHOD 2
#define RUBY_FILE 3 // and its line; 2 is 0, where PHP has a class
#define RUBY_NAME_LENGTH 11
#define RUBY_FILE_LENGTH 12

// What goes in first must be mixed itself, into 0: else it meets the next word in an exclusive or.
static __always_inline u64 mix(u64 hash, u64 word)
{
	hash = (hash ^ word) * 0xff51afd7ed558ccdULL;
	return hash ^ hash >> 32;
}

// The length of a text of `code_fields` of Ruby, by its address.
static __always_inline u64 ruby_length(struct python_walk *walk, u64 address)
{
	return walk->code_fields[address == walk->code_fields[RUBY_FILE] ? RUBY_FILE_LENGTH :
									   RUBY_NAME_LENGTH];
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
	if (!address) // a function of PHP has no class, or no file
		return 0;
	layout = &walk->layout;
	from = layout->string_length;
	if (layout->style == RUBY_FRAMES) {
		if (walk->code_fields[RUBY_KIND] == RUBY_METHOD)
			return address;
		from = 0;
	}
	if (bpf_probe_read_user(walk->text, whole, (void *)(address + from))) {
		whole = 0; // near the end of a mapping
		if (layout->style != RUBY_FRAMES)
			walk->is_unread |= bpf_probe_read_user(walk->text, HEADER_BYTES,
							       (void *)(address + from));
	}
	length = walk->text[0];
	state = field(walk->text, (layout->string_state - from) & 31) >>
		(layout->string_shift & 31);
	if (layout->style >= PHP_FRAMES)
		state = BYTES_OF_PHP;
	start = state & 1 << 6 ? layout->ascii_size : layout->compact_size;
	if (layout->style == RUBY_FRAMES) {
		length = ruby_length(walk, address);
		start = 0;
	}
	if (length > MOST_STRING)
		length = MOST_STRING;
	bytes = length * (state >> 2 & 7);
	hash = mix(0, length << 3 | (state >> 2 & 7));
	if (!whole) {
		u64 *to = &walk->text[(start - from) >> 3 & 7], size = bytes;

		OPAQUE(size);
		if (size > FEW_BYTES)
			size = FEW_BYTES;
		walk->is_unread |= bpf_probe_read_user(to, size, (void *)(address + start));
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

// Whether PyASCIIObject.state is that of a string which was read: compact, of kind 1, 2 or 4. 1 or 0.
static __always_inline u32 is_text(u32 state)
{
	return state >> 5 & 0x16u >> (state >> 2 & 7) & 1;
}

// A string's state, length and first bytes; how many these are.
static __always_inline u64 read_string(struct python_walk *walk, u64 address, u32 *state,
				       u32 *length, u8 *to, u32 room)
{
	struct python_process *layout = &walk->layout;
	u64 characters, size; // compared as 64 bits, see read_fields()
	u32 kind, start;

	if (layout->style == RUBY_FRAMES) {
		characters = ruby_length(walk, address);
	} else {
		characters = user_word(address + layout->string_length);
	}
	*state = user_half(address + layout->string_state) >> (layout->string_shift & 31);
	if (layout->style >= PHP_FRAMES)
		*state = BYTES_OF_PHP;
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
	u64 *words, count;

	if (!record)
		return 0;
	words = (u64 *)(record->text + TEXT_BYTES);
	if (size > TABLE_BYTES)
		size = TABLE_BYTES;
	OPAQUE(size);
	if (size > TABLE_BYTES || bpf_probe_read_user(words, size, (void *)address))
		return 0;
	count = size / 8;
	OPAQUE(count);
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < TABLE_BYTES / 8; i++) {
		OPAQUE(i);
		if (i >= TABLE_BYTES / 8 || i >= count)
			break;
		hash = mix(hash, words[i]);
	}
	OPAQUE(size); // computed again, so that the verifier looks at the end once, not for each length
	count = size / 8;
	if (size & 7 && count < TABLE_BYTES / 8)
		hash = mix(hash, words[count] & ((1ull << (size & 7) * 8) - 1));
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

#endif
