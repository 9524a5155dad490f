/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whole user stacks, Python functions among them, in any BPF program: docs/stacks-library.md.
 *
 * Include it behind vmlinux.h or <linux/types.h>. Python's purebpf.stacks.load() links the functions
 * in; other loaders refuse such an object, as the kernel does not have them.
 */
#ifndef PUREBPF_STACKS_H
#define PUREBPF_STACKS_H

/* A stack: equal stacks of a process have one number, but for the first ones of code that was not
 * known yet, which have a number each. Below PUREBPF_FIRST_STACK it is no stack. */
typedef unsigned long long purebpf_stack;

#define PUREBPF_NO_STACK 0	    /* a thread of the kernel, or a process that exits */
#define PUREBPF_STACK_UNAVAILABLE 1 /* before Python's load() has returned, or after close() */
#define PUREBPF_STACK_LOST 2	    /* counted: Stacks.losses() */
#define PUREBPF_FIRST_STACK 16

/* The stack of the current task in user space; of a program at a perf event, uprobe, USDT probe,
 * kprobe, tracepoint, raw tracepoint or function of the kernel (fentry, tp_btf). Call it in the
 * program itself or a function that is inlined there: the walk needs the seven other frames of a BPF
 * call chain. `ctx` is the argument of the program. */
extern purebpf_stack user_stack(void *ctx) __attribute__((section(".ksyms")));

/* The stack of the current task in the kernel, as bpf_get_stack() walks it. */
extern purebpf_stack kernel_stack(void *ctx) __attribute__((section(".ksyms")));

#endif
