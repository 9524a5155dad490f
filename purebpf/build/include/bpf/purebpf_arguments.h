/* SPDX-License-Identifier: MIT
 *
 * Macros with a varying number of arguments, up to twelve.
 */
#ifndef PUREBPF_ARGUMENTS_H
#define PUREBPF_ARGUMENTS_H

#define __pb_glue(a, b) a##b
#define __pb_cat(a, b) __pb_glue(a, b)

#define __pb_14th(_0, _1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, number, ...) number
#define __pb_count(arguments...) \
	__pb_14th(_, ##arguments, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)

/* __pb_each(f, a, b): f(a), f(b) */
#define __pb_each_0(f, ...)
#define __pb_each_1(f, a) f(a)
#define __pb_each_2(f, a, rest...) f(a), __pb_each_1(f, rest)
#define __pb_each_3(f, a, rest...) f(a), __pb_each_2(f, rest)
#define __pb_each_4(f, a, rest...) f(a), __pb_each_3(f, rest)
#define __pb_each_5(f, a, rest...) f(a), __pb_each_4(f, rest)
#define __pb_each_6(f, a, rest...) f(a), __pb_each_5(f, rest)
#define __pb_each_7(f, a, rest...) f(a), __pb_each_6(f, rest)
#define __pb_each_8(f, a, rest...) f(a), __pb_each_7(f, rest)
#define __pb_each_9(f, a, rest...) f(a), __pb_each_8(f, rest)
#define __pb_each_10(f, a, rest...) f(a), __pb_each_9(f, rest)
#define __pb_each_11(f, a, rest...) f(a), __pb_each_10(f, rest)
#define __pb_each_12(f, a, rest...) f(a), __pb_each_11(f, rest)
#define __pb_each(f, arguments...) __pb_cat(__pb_each_, __pb_count(arguments))(f, ##arguments)

/* The program `name(parameter)`, with a body that has arguments of its own: `values`, from it. */
#define __pb_program(name, parameter, values, arguments...) \
	name(parameter); \
	static __always_inline typeof(name(0)) __pb_cat(____, name)(parameter, ##arguments); \
	typeof(name(0)) name(parameter) \
	{ \
		_Pragma("clang diagnostic push") \
		_Pragma("clang diagnostic ignored \"-Wint-conversion\"") \
		return __pb_cat(____, name) values; \
		_Pragma("clang diagnostic pop") \
	} \
	static __always_inline typeof(name(0)) __pb_cat(____, name)(parameter, ##arguments)

#endif
