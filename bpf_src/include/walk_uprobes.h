// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Addresses that uprobes put in the place of a program's own, on x86_64: kernel/events/uprobes.c.
#ifndef WALK_UPROBES_H
#define WALK_UPROBES_H

#include "walk.h"

#define MAX_RETURN_PROBES 64 // of functions in progress of a task: MAX_URETPROBE_DEPTH
#define MAX_INSTRUCTION 16   // bytes: MAX_UINSN_BYTES

// Offsets in this kernel, which user space sets; 0: not known, and stacks are cut where uprobes are.
u32 utask_at = 0;	     // struct task_struct
u32 return_instances_at = 0; // struct uprobe_task: of the function further in
u32 active_uprobe_at = 0;
u32 vaddr_at = 0;     // of the instruction with the probe
u32 xol_vaddr_at = 0; // of its copy, which is executed instead
u32 stack_at = 0;     // struct return_instance: where the return address was
u32 orig_ret_vaddr_at = 0;
u32 next_at = 0; // of a function further out

static __always_inline u64 uprobes_of_task(void)
{
	return utask_at ? kernel_word((void *)bpf_get_current_task() + utask_at) : 0;
}

// The leaf executes the copy of an instruction with a probe.
static __always_inline bool leave_copied_instruction(struct walk *walk)
{
	void *task = (void *)uprobes_of_task();
	u64 copy, offset;

	if (!task || !kernel_word(task + active_uprobe_at))
		return false;
	copy = kernel_word(task + xol_vaddr_at);
	offset = walk->pc - copy;
	if (!copy || offset > MAX_INSTRUCTION)
		return false;
	walk->pc = kernel_word(task + vaddr_at) + offset;
	return true;
}

// The return address is the trampoline of return probes: the kernel has the program's own.
static __always_inline bool leave_return_probe(struct walk *walk)
{
	void *each = (void *)walk->return_probes, *task;
	u64 caller = 0;

	if (!each) {
		task = (void *)uprobes_of_task();
		each = task ? (void *)kernel_word(task + return_instances_at) : 0;
	}
#pragma clang loop unroll(disable)
	for (u32 taken = 0; taken < MAX_RETURN_PROBES; taken++) {
		u64 behind;

		OPAQUE(taken);
		if (!each)
			break;
		behind = kernel_word(each + stack_at) + sizeof(u64);
		if (behind > walk->sp)
			break;
		if (behind == walk->sp) // the last one of several: the others have the trampoline
			caller = kernel_word(each + orig_ret_vaddr_at);
		each = (void *)kernel_word(each + next_at);
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
