/* SPDX-License-Identifier: MIT
 *
 * CO-RE: reads of kernel memory, and questions, that loaders answer with the types of the kernel
 * that a program is loaded into. The names are those of libbpf's header of this name.
 */
#ifndef PUREBPF_CORE_READ_H
#define PUREBPF_CORE_READ_H

#include "bpf_helpers.h"

/* ---- questions ---- */

/* What the second argument of each builtin of clang means (enum bpf_core_relo_kind of Linux). */
enum bpf_field_info_kind {
	BPF_FIELD_BYTE_OFFSET = 0,
	BPF_FIELD_BYTE_SIZE = 1,
	BPF_FIELD_EXISTS = 2,
	BPF_FIELD_SIGNED = 3,
	BPF_FIELD_LSHIFT_U64 = 4,
	BPF_FIELD_RSHIFT_U64 = 5,
};

enum bpf_type_id_kind {
	BPF_TYPE_ID_LOCAL = 0,
	BPF_TYPE_ID_TARGET = 1,
};

enum bpf_type_info_kind {
	BPF_TYPE_EXISTS = 0,
	BPF_TYPE_SIZE = 1,
	BPF_TYPE_MATCHES = 2,
};

enum bpf_enum_value_kind {
	BPF_ENUMVAL_EXISTS = 0,
	BPF_ENUMVAL_VALUE = 1,
};

/* A field: `pointer->member`, or `struct name, member`. */
#define __pb_field_1(access) access
#define __pb_field_2(type, member) ((typeof(type) *)0)->member
#define __pb_field(field...) __pb_cat(__pb_field_, __pb_count(field))(field)

#define bpf_core_field_exists(field...)                                                            \
	__builtin_preserve_field_info(__pb_field(field), BPF_FIELD_EXISTS)
#define bpf_core_field_size(field...)                                                              \
	__builtin_preserve_field_info(__pb_field(field), BPF_FIELD_BYTE_SIZE)
#define bpf_core_field_offset(field...)                                                            \
	__builtin_preserve_field_info(__pb_field(field), BPF_FIELD_BYTE_OFFSET)

#define bpf_core_type_id_local(type) __builtin_btf_type_id(*(typeof(type) *)0, BPF_TYPE_ID_LOCAL)
#define bpf_core_type_id_kernel(type) __builtin_btf_type_id(*(typeof(type) *)0, BPF_TYPE_ID_TARGET)
#define bpf_core_type_exists(type)                                                                 \
	__builtin_preserve_type_info(*(typeof(type) *)0, BPF_TYPE_EXISTS)
#define bpf_core_type_matches(type)                                                                \
	__builtin_preserve_type_info(*(typeof(type) *)0, BPF_TYPE_MATCHES)
#define bpf_core_type_size(type) __builtin_preserve_type_info(*(typeof(type) *)0, BPF_TYPE_SIZE)

#define bpf_core_enum_value_exists(type, value)                                                    \
	__builtin_preserve_enum_value(*(typeof(type) *)value, BPF_ENUMVAL_EXISTS)
#define bpf_core_enum_value(type, value)                                                           \
	__builtin_preserve_enum_value(*(typeof(type) *)value, BPF_ENUMVAL_VALUE)

/* ---- reads of one place ---- */

#define bpf_core_read(to, size, from)                                                              \
	bpf_probe_read_kernel(to, size, (const void *)__builtin_preserve_access_index(from))
#define bpf_core_read_str(to, size, from)                                                          \
	bpf_probe_read_kernel_str(to, size, (const void *)__builtin_preserve_access_index(from))
#define bpf_core_read_user(to, size, from)                                                         \
	bpf_probe_read_user(to, size, (const void *)__builtin_preserve_access_index(from))
#define bpf_core_read_user_str(to, size, from)                                                     \
	bpf_probe_read_user_str(to, size, (const void *)__builtin_preserve_access_index(from))

/* A pointer that may be followed without a helper (Linux 6.2). */
extern void *bpf_rdonly_cast(const void *obj, __u32 btf_id) __ksym __weak;
#define bpf_core_cast(pointer, type)                                                               \
	((typeof(type) *)bpf_rdonly_cast((pointer), bpf_core_type_id_kernel(type)))

/* ---- bit fields: eight bytes are read, or as many as there are, and shifted into place ---- */

#define __pb_bits(from, member, what)                                                              \
	__builtin_preserve_field_info((from)->member, BPF_FIELD_##what)

#define __pb_shift(word, from, member)                                                             \
	({                                                                                         \
		(word) <<= __pb_bits(from, member, LSHIFT_U64);                                    \
		if (__pb_bits(from, member, SIGNED))                                               \
			(word) = (long long)(word) >> __pb_bits(from, member, RSHIFT_U64);         \
		else                                                                               \
			(word) >>= __pb_bits(from, member, RSHIFT_U64);                            \
		(word);                                                                            \
	})

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define __pb_word_place(word, size) ((void *)&(word))
#else
#define __pb_word_place(word, size) ((void *)&(word) + 8 - (size))
#endif

#define BPF_CORE_READ_BITFIELD_PROBED(from, member)                                                \
	({                                                                                         \
		unsigned long long __pb_bit_word = 0;                                              \
		unsigned int __pb_bit_size = __pb_bits(from, member, BYTE_SIZE);                   \
		bpf_probe_read_kernel(__pb_word_place(__pb_bit_word, __pb_bit_size),               \
				      __pb_bit_size,                                               \
				      (const void *)(from) +                                       \
					      __pb_bits(from, member, BYTE_OFFSET));               \
		__pb_shift(__pb_bit_word, from, member);                                           \
	})

/* barrier_var(): one relocation of the place, not one in each case. */
#define BPF_CORE_READ_BITFIELD(from, member)                                                       \
	({                                                                                         \
		const void *__pb_bit_place =                                                       \
			(const void *)(from) + __pb_bits(from, member, BYTE_OFFSET);               \
		unsigned long long __pb_bit_word = 0;                                              \
		barrier_var(__pb_bit_place);                                                       \
		switch (__pb_bits(from, member, BYTE_SIZE)) {                                      \
		case 1:                                                                            \
			__pb_bit_word = *(const unsigned char *)__pb_bit_place;                    \
			break;                                                                     \
		case 2:                                                                            \
			__pb_bit_word = *(const unsigned short *)__pb_bit_place;                   \
			break;                                                                     \
		case 4:                                                                            \
			__pb_bit_word = *(const unsigned int *)__pb_bit_place;                     \
			break;                                                                     \
		case 8:                                                                            \
			__pb_bit_word = *(const unsigned long long *)__pb_bit_place;               \
			break;                                                                     \
		}                                                                                  \
		__pb_shift(__pb_bit_word, from, member);                                           \
	})

/* ---- reads along a chain of pointers: BPF_CORE_READ(task, real_parent, tgid) ---- */

#if __clang_major__ >= 19
#define __pb_plain(value) __typeof_unqual__(value)
#else
#define __pb_plain(value) typeof(value)
#endif

/* The pointer `from->member`. */
#define __pb_follow(read, from, member)                                                            \
	({                                                                                         \
		__auto_type __pb_from = (from);                                                    \
		const void *__pb_next;                                                             \
		read(&__pb_next, sizeof(__pb_next), &__pb_from->member);                           \
		(typeof(__pb_from->member))__pb_next;                                              \
	})

/* __pb_chain(last, read, to, from, a, b, c): follows a and b, then last(to, size, &...->c). */
#define __pb_chain_1(last, read, to, from, a)                                                      \
	({                                                                                         \
		__auto_type __pb_from = (from);                                                    \
		last((void *)(to), sizeof(*(to)), &__pb_from->a);                                  \
	})
#define __pb_chain_2(last, read, to, from, a, rest...) \
	__pb_chain_1(last, read, to, __pb_follow(read, from, a), rest)
#define __pb_chain_3(last, read, to, from, a, rest...) \
	__pb_chain_2(last, read, to, __pb_follow(read, from, a), rest)
#define __pb_chain_4(last, read, to, from, a, rest...) \
	__pb_chain_3(last, read, to, __pb_follow(read, from, a), rest)
#define __pb_chain_5(last, read, to, from, a, rest...) \
	__pb_chain_4(last, read, to, __pb_follow(read, from, a), rest)
#define __pb_chain_6(last, read, to, from, a, rest...) \
	__pb_chain_5(last, read, to, __pb_follow(read, from, a), rest)
#define __pb_chain_7(last, read, to, from, a, rest...) \
	__pb_chain_6(last, read, to, __pb_follow(read, from, a), rest)
#define __pb_chain_8(last, read, to, from, a, rest...) \
	__pb_chain_7(last, read, to, __pb_follow(read, from, a), rest)
#define __pb_chain_9(last, read, to, from, a, rest...) \
	__pb_chain_8(last, read, to, __pb_follow(read, from, a), rest)
#define __pb_chain_10(last, read, to, from, a, rest...) \
	__pb_chain_9(last, read, to, __pb_follow(read, from, a), rest)
#define __pb_chain(last, read, to, from, members...) \
	__pb_cat(__pb_chain_, __pb_count(members))(last, read, to, from, members)

/* The type of from->a->b->c. */
#define __pb_arrow_1(from, a) (from)->a
#define __pb_arrow_2(from, a, rest...) __pb_arrow_1((from)->a, rest)
#define __pb_arrow_3(from, a, rest...) __pb_arrow_2((from)->a, rest)
#define __pb_arrow_4(from, a, rest...) __pb_arrow_3((from)->a, rest)
#define __pb_arrow_5(from, a, rest...) __pb_arrow_4((from)->a, rest)
#define __pb_arrow_6(from, a, rest...) __pb_arrow_5((from)->a, rest)
#define __pb_arrow_7(from, a, rest...) __pb_arrow_6((from)->a, rest)
#define __pb_arrow_8(from, a, rest...) __pb_arrow_7((from)->a, rest)
#define __pb_arrow_9(from, a, rest...) __pb_arrow_8((from)->a, rest)
#define __pb_arrow_10(from, a, rest...) __pb_arrow_9((from)->a, rest)
#define __pb_arrow(from, members...) __pb_cat(__pb_arrow_, __pb_count(members))(from, members)
#define __pb_value(read, from, members...) \
	({ \
		__pb_plain(__pb_arrow(from, members)) __pb_result; \
		__pb_chain(read, read, &__pb_result, from, members); \
		__pb_result; \
	})

#define BPF_CORE_READ(from, members...) __pb_value(bpf_core_read, from, members)
#define BPF_CORE_READ_USER(from, members...) __pb_value(bpf_core_read_user, from, members)
#define BPF_PROBE_READ(from, members...) __pb_value(bpf_probe_read_kernel, from, members)
#define BPF_PROBE_READ_USER(from, members...) __pb_value(bpf_probe_read_user, from, members)

#define BPF_CORE_READ_INTO(to, from, members...) \
	__pb_chain(bpf_core_read, bpf_core_read, to, from, members)
#define BPF_CORE_READ_USER_INTO(to, from, members...) \
	__pb_chain(bpf_core_read_user, bpf_core_read_user, to, from, members)
#define BPF_PROBE_READ_INTO(to, from, members...) \
	__pb_chain(bpf_probe_read_kernel, bpf_probe_read_kernel, to, from, members)
#define BPF_PROBE_READ_USER_INTO(to, from, members...) \
	__pb_chain(bpf_probe_read_user, bpf_probe_read_user, to, from, members)

#define BPF_CORE_READ_STR_INTO(to, from, members...) \
	__pb_chain(bpf_core_read_str, bpf_core_read, to, from, members)
#define BPF_CORE_READ_USER_STR_INTO(to, from, members...) \
	__pb_chain(bpf_core_read_user_str, bpf_core_read_user, to, from, members)
#define BPF_PROBE_READ_STR_INTO(to, from, members...) \
	__pb_chain(bpf_probe_read_kernel_str, bpf_probe_read_kernel, to, from, members)
#define BPF_PROBE_READ_USER_STR_INTO(to, from, members...) \
	__pb_chain(bpf_probe_read_user_str, bpf_probe_read_user, to, from, members)

#endif
