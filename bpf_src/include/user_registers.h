// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The user registers of a sample's task. x86_64 only.
#ifndef USER_REGISTERS_H
#define USER_REGISTERS_H

#include "task.h"

// struct pt_regs of x86_64 (arch/x86/include/asm/ptrace.h), with which the context of a
// perf_event program begins.
struct registers {
	u64 r15, r14, r13, r12, bp, bx;
	u64 r11, r10, r9, r8, ax, cx, dx, si, di;
	u64 orig_ax, ip, cs, flags, sp, ss;
};

struct mm_struct___code {
	unsigned long end_code;
} __attribute__((preserve_access_index));

// Whether the current task, in the kernel, has no user stack: it exits and has given its memory back
// (exit_mm()), or executes a program, has the new memory, but the registers of the old program
// (begin_new_exec() to start_thread(); mm->end_code is set just before that).
static __always_inline bool has_dropped_stack(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct mm_struct___code *mm = (void *)BPF_CORE_READ(task, mm);

	return !mm || !BPF_CORE_READ(mm, end_code);
}

#define USER_CS 0x33 // arch/x86/include/asm/segment.h: __USER_CS, of 64-bit code

// The registers that the current task entered the kernel with. False: it has none.
//
// A thread of the kernel has zeros there, one that works for a process (io_uring) has no sp and ip
// (arch/x86/kernel/process.c, copy_thread).
static __always_inline bool saved_registers(struct registers *to)
{
	// Linux 5.15 (dd6e10fbd9fb): before, an offset from the end of the stack, which moved since.
	void *user = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());

	return user && !bpf_probe_read_kernel(to, sizeof(*to), user) && (to->cs & 3) == 3 && to->sp;
}

// Those of a sample. False: a task of the kernel, or its registers could not be read.
static __always_inline bool user_registers(struct registers *ctx, struct registers *to)
{
	if ((ctx->cs & 3) == 3) {
		__builtin_memcpy(to, ctx, sizeof(*to));
		return true;
	}
	return saved_registers(to);
}

#endif
