// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Whether a program at a tracepoint of system calls can be preempted. If so, the program is not
// run for any other task of that CPU until it goes on: the kernel takes it for recursion.
#include "purebpf.h"

#define PREEMPT_MASK 0xff

extern const int __preempt_count __ksym __weak; // x86 since Linux 6.15 (commit 46e8fff6d45f)
extern void bpf_preempt_disable(void) __ksym __weak;
extern void bpf_preempt_enable(void) __ksym __weak;

enum answer {
	UNASKED = 0,
	PREEMPTED = 1,
	NOT_PREEMPTED = 2, // or the kernel does not say
};

u32 answer = UNASKED;

static __always_inline int preempt_count(void)
{
	const int *count = bpf_this_cpu_ptr(&__preempt_count);

	return *count & PREEMPT_MASK;
}

// A kernel built without preemption counts nothing, so the count says something only where it
// grows in between.
SEC("raw_tp/sys_enter")
int ask(void *ctx)
{
	int outside, inside;

	answer = NOT_PREEMPTED;
	if (!&__preempt_count || !bpf_preempt_disable || !bpf_preempt_enable)
		return 0;
	outside = preempt_count();
	bpf_preempt_disable();
	inside = preempt_count();
	bpf_preempt_enable();
	if (!outside && inside)
		answer = PREEMPTED;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
