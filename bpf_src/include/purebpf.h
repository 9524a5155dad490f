// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What every BPF program of purebpf begins with.
#ifndef PUREBPF_H
#define PUREBPF_H

#include <linux/types.h>
#include <linux/bpf.h>
#include <linux/errno.h>
#include <bpf/bpf_helpers.h>

typedef __u8 u8;
typedef __u32 u32;
typedef __u64 u64;
typedef __s64 s64;
#define bool _Bool
#define true 1
#define false 0

#define TASK_COMM_LEN 16

// Configuration: user space writes these before the load. The map is frozen by then, so the
// verifier knows the values and drops the branches that they rule out.
#define CONFIG const volatile

// Keeps a variable opaque to the compiler, so that a bound that the source checks is the bound
// that the verifier sees (clang otherwise folds it into another variable).
#define OPAQUE(variable) asm volatile("" : "+r"(variable))

// Programs of tracepoints return it: after 0, perf and others do not see the event
// (trace_call_bpf in kernel/trace/bpf_trace.c).
#define SEEN_BY_PERF 1

#endif
