// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Addresses that uprobes put in the place of a program's own, on x86_64: kernel/events/uprobes.c.
#ifndef WALK_UPROBES_H
#define WALK_UPROBES_H

#include "walk.h"

#define MAX_RETURN_PROBES 64 // of functions in progress of a task: MAX_URETPROBE_DEPTH
#define MAX_INSTRUCTION 16   // bytes: MAX_UINSN_BYTES

struct return_instance {
	unsigned long stack; // where the return address was
	unsigned long orig_ret_vaddr;
	struct return_instance *next; // of a function further out
} __attribute__((preserve_access_index));

struct uprobe;

struct uprobe_task {
	struct return_instance *return_instances;
	struct uprobe *active_uprobe;
	unsigned long vaddr;	 // of the instruction with the probe
	unsigned long xol_vaddr; // of its copy, which is executed instead
} __attribute__((preserve_access_index));

struct task_struct___probed {
	struct uprobe_task *utask; // CONFIG_UPROBES
} __attribute__((preserve_access_index));

static __always_inline struct uprobe_task *uprobes_of_task(void)
{
	struct task_struct___probed *task = (void *)bpf_get_current_task();

	return bpf_core_field_exists(task->utask) ? BPF_CORE_READ(task, utask) : 0;
}

// The leaf executes the copy of an instruction with a probe.
static __always_inline bool leave_copied_instruction(struct walk *walk)
{
	struct uprobe_task *task = uprobes_of_task();
	u64 copy, offset;

	if (!task || !BPF_CORE_READ(task, active_uprobe))
		return false;
	copy = BPF_CORE_READ(task, xol_vaddr);
	offset = walk->pc - copy;
	if (!copy || offset > MAX_INSTRUCTION)
		return false;
	walk->pc = BPF_CORE_READ(task, vaddr) + offset;
	return true;
}

// The return address is the trampoline of return probes: the kernel has the program's own.
static __always_inline bool leave_return_probe(struct walk *walk)
{
	struct return_instance *each = (void *)walk->return_probes;
	u64 caller = 0;

	if (!each) {
		struct uprobe_task *task = uprobes_of_task();

		each = task ? BPF_CORE_READ(task, return_instances) : 0;
	}
#pragma clang loop unroll(disable)
	for (u32 taken = 0; taken < MAX_RETURN_PROBES; taken++) {
		u64 behind;

		OPAQUE(taken);
		if (!each)
			break;
		behind = BPF_CORE_READ(each, stack) + sizeof(u64);
		if (behind > walk->sp)
			break;
		if (behind == walk->sp) // the last one of several: the others have the trampoline
			caller = BPF_CORE_READ(each, orig_ret_vaddr);
		each = BPF_CORE_READ(each, next);
	}
	walk->return_probes = (u64)each;
	if (!caller)
		return false;
	walk->pc = caller;
	return true;
}

// Puts the program's own address in the place of one that a uprobe put there. 0: none did.
__noinline int leave_uprobe(u32 place)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);

	if (!walk || arm64_code_bits)
		return 0;
	return walk->depth ? leave_return_probe(walk) : leave_copied_instruction(walk);
}

#endif
