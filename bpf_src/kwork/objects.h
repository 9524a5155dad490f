// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The kernel's objects of interrupts, work and timers, as far as they are read.
#ifndef KWORK_OBJECTS_H
#define KWORK_OBJECTS_H

#include "purebpf.h"
#include <bpf/bpf_core_read.h>

struct irqaction {
	const char *name;
} __attribute__((preserve_access_index));

struct work_struct {
	void *func;
} __attribute__((preserve_access_index));

struct timer_list {
	void *function;
} __attribute__((preserve_access_index));

struct hrtimer {
	s64 _softexpires;
	void *function;
} __attribute__((preserve_access_index));

static __always_inline void read_handler_name(struct irqaction *action, char *name, u32 size)
{
	bpf_probe_read_kernel_str(name, size, BPF_CORE_READ(action, name));
}

static __always_inline u64 function_of_work(struct work_struct *work)
{
	return (u64)BPF_CORE_READ(work, func);
}

#endif
