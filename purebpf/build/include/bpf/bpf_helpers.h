/* SPDX-License-Identifier: MIT
 *
 * What BPF programs in C are written with: sections, maps, helpers, and small macros. The names are
 * those of libbpf's header of this name, so that programs compile with either.
 */
#ifndef PUREBPF_HELPERS_H
#define PUREBPF_HELPERS_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#include "bpf_helper_defs.h"
#include "purebpf_arguments.h"

#ifndef NULL
#define NULL ((void *)0)
#endif

/* ---- where things go ---- */

#define SEC(name)                                                                                  \
	_Pragma("clang diagnostic push")                                                           \
	_Pragma("clang diagnostic ignored \"-Wignored-attributes\"")                               \
	__attribute__((section(name), used))                                                       \
	_Pragma("clang diagnostic pop")

#define __kconfig __attribute__((section(".kconfig")))
#define __ksym __attribute__((section(".ksyms")))

#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#undef __noinline
#define __noinline __attribute__((noinline))
#undef __weak
#define __weak __attribute__((weak))
#undef __hidden
#define __hidden __attribute__((visibility("hidden")))

/* ---- maps: members of a struct in SEC(".maps") ---- */

#define __uint(name, number) int(*name)[number]
#define __ulong(name, number) enum { __pb_cat(__pb_ulong_##name##_, __COUNTER__) = number } name
#define __type(name, c_type) typeof(c_type) *name
#define __array(name, c_type) typeof(c_type) *name[]

enum libbpf_pin_type {
	LIBBPF_PIN_NONE = 0,
	LIBBPF_PIN_BY_NAME = 1,
};

/* ---- values of the kernel's configuration ---- */

enum libbpf_tristate {
	TRI_NO = 0,
	TRI_YES = 1,
	TRI_MODULE = 2,
};

#undef KERNEL_VERSION
#define KERNEL_VERSION(major, minor, patch)                                                        \
	(((major) << 16) + ((minor) << 8) + ((patch) < 256 ? (patch) : 255))

/* ---- what the verifier reads of pointers and arguments ---- */

#define __kptr __attribute__((btf_type_tag("kptr")))
#define __kptr_untrusted __attribute__((btf_type_tag("kptr_untrusted")))
#define __percpu_kptr __attribute__((btf_type_tag("percpu_kptr")))
#define __uptr __attribute__((btf_type_tag("uptr")))

#define __arg_ctx __attribute__((btf_decl_tag("arg:ctx")))
#define __arg_nonnull __attribute__((btf_decl_tag("arg:nonnull")))
#define __arg_nullable __attribute__((btf_decl_tag("arg:nullable")))
#define __arg_trusted __attribute__((btf_decl_tag("arg:trusted")))
#define __arg_untrusted __attribute__((btf_decl_tag("arg:untrusted")))
#define __arg_arena __attribute__((btf_decl_tag("arg:arena")))
#define __contains(name, node) __attribute__((btf_decl_tag("contains:" #name ":" #node)))

#ifdef __BPF_FEATURE_ADDR_SPACE_CAST
#define __arena __attribute__((address_space(1)))
#else
#define __arena
#endif

/* Whether the kernel has a function or variable: only a weak one may be missing. */
#define bpf_ksym_exists(symbol)                                                                    \
	({                                                                                         \
		_Static_assert(!__builtin_constant_p(!!(symbol)), #symbol " must be __weak");      \
		!!(symbol);                                                                        \
	})

/* ---- the compiler ---- */

#undef offsetof
#define offsetof(type, member) __builtin_offsetof(type, member)
#undef container_of
#define container_of(pointer, type, member)                                                        \
	((type *)((void *)(pointer) - (unsigned long)&((type *)0)->member))

#undef barrier
#define barrier() asm volatile("" : : : "memory")
#undef barrier_var
#define barrier_var(variable) asm volatile("" : "+r"(variable))
#undef __bpf_unreachable
#define __bpf_unreachable() __builtin_trap()

/* A tail call with a constant slot: a jump that the kernel patches directly (commit d2e4c1e6c294,
 * "bpf: Constant map key tracking for prog array pokes"). The constant stays in the call's own
 * block, which a call in C does not promise.
 */
static __always_inline void bpf_tail_call_static(void *ctx, const void *map, const __u32 slot)
{
	if (!__builtin_constant_p(slot))
		__bpf_unreachable();
	asm volatile("r1 = %0\n\tr2 = %1\n\tr3 = %2\n\tcall 12"
		     :
		     : "r"(ctx), "r"(map), "i"(slot)
		     : "r0", "r1", "r2", "r3", "r4", "r5", "memory");
}

/* ---- text: a format and up to twelve values ---- */

#define __pb_word(value) (unsigned long long)(value)
#define __pb_text(call, format, values...)                                                         \
	({                                                                                         \
		static const char __pb_format[] = format;                                          \
		unsigned long long __pb_values[] = {__pb_each(__pb_word, values)};                 \
		call;                                                                              \
	})

#define BPF_SNPRINTF(out, size, format, values...)                                                 \
	__pb_text(bpf_snprintf(out, size, __pb_format, __pb_values, sizeof(__pb_values)), format,  \
		  values)
#define BPF_SEQ_PRINTF(seq, format, values...)                                                     \
	__pb_text(bpf_seq_printf(seq, __pb_format, sizeof(__pb_format), __pb_values,               \
				 sizeof(__pb_values)),                                             \
		  format, values)
/* Linux 6.18, and without the last argument Linux 7; BPF_STDOUT or BPF_STDERR, for
 * Program.read_stream(). */
extern int bpf_stream_vprintk(int stream_id, const char *fmt__str, const void *args,
			      unsigned int len__sz) __ksym __weak;
extern int bpf_stream_vprintk_impl(int stream_id, const char *fmt__str, const void *args,
				   unsigned int len__sz, void *aux__prog) __ksym __weak;
#define bpf_stream_printk(stream, format, values...)                                               \
	__pb_text(bpf_ksym_exists(bpf_stream_vprintk) ?                                            \
			  bpf_stream_vprintk(stream, __pb_format, __pb_values,                     \
					     sizeof(__pb_values)) :                                \
			  bpf_stream_vprintk_impl(stream, __pb_format, __pb_values,                \
						  sizeof(__pb_values), (void *)0),                 \
		  format, values)
#define __bpf_vprintk(format, values...)                                                           \
	__pb_text(bpf_trace_vprintk(__pb_format, sizeof(__pb_format), __pb_values,                 \
				    sizeof(__pb_values)),                                          \
		  format, values)
#define __bpf_printk(format, values...)                                                            \
	({                                                                                         \
		static const char __pb_format[] = format;                                          \
		bpf_trace_printk(__pb_format, sizeof(__pb_format), ##values);                      \
	})

/* bpf_trace_printk() of every kernel takes three values, bpf_trace_vprintk() (Linux 5.16) twelve. */
#define __pb_printk_0 __bpf_printk
#define __pb_printk_1 __bpf_printk
#define __pb_printk_2 __bpf_printk
#define __pb_printk_3 __bpf_printk
#define __pb_printk_4 __bpf_vprintk
#define __pb_printk_5 __bpf_vprintk
#define __pb_printk_6 __bpf_vprintk
#define __pb_printk_7 __bpf_vprintk
#define __pb_printk_8 __bpf_vprintk
#define __pb_printk_9 __bpf_vprintk
#define __pb_printk_10 __bpf_vprintk
#define __pb_printk_11 __bpf_vprintk
#define __pb_printk_12 __bpf_vprintk
#define bpf_printk(format, values...)                                                              \
	__pb_cat(__pb_printk_, __pb_count(values))(format, ##values)

/* ---- loops whose end the verifier needs no proof of (open-coded iterators, Linux 6.4) ---- */

struct bpf_iter_num;

extern int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __weak __ksym;
extern int *bpf_iter_num_next(struct bpf_iter_num *it) __weak __ksym;
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __weak __ksym;

/* The iterator of a loop: begun when declared, ended when the loop is left in any way. clang leaves
 * a function out of the BTF that only cleanup() names, hence the second mention.
 */
#define __pb_iterator(kind, values...)                                                             \
	struct bpf_iter_##kind                                                                     \
		__pb_it __attribute__((aligned(8), cleanup(bpf_iter_##kind##_destroy))),           \
		*__pb_begun __attribute__((unused)) =                                              \
			(bpf_iter_##kind##_new(&__pb_it, ##values),                                \
			 (void)bpf_iter_##kind##_destroy, (void *)0)

#undef bpf_for_each
#define bpf_for_each(kind, item, values...)                                                        \
	for (__pb_iterator(kind, ##values); ((item) = bpf_iter_##kind##_next(&__pb_it));)

#undef bpf_for
#define bpf_for(i, start, end)                                                                     \
	for (__pb_iterator(num, (start), (end)); ({                                                \
		     int *__pb_next = bpf_iter_num_next(&__pb_it);                                 \
		     __pb_next && ((i) = *__pb_next, (i) >= (start) && (i) < (end));               \
	     });)

#undef bpf_repeat
#define bpf_repeat(times)                                                                          \
	for (__pb_iterator(num, 0, (times)); bpf_iter_num_next(&__pb_it);)

#endif
