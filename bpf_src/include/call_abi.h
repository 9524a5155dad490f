// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// By which ABI the current task makes its call.
#ifndef CALL_ABI_H
#define CALL_ABI_H

#include "task.h"

typedef __s32 s32;

#define X32_BIT (1U << 30)

enum abi {
	ABI_NATIVE = 0,
	ABI_COMPAT = 1, // 32-bit
};

CONFIG u32 compat_flag = 0;    // the bit of thread_info that marks a 32-bit call
CONFIG int compat_offset = -1; // where in a task that is, for programs without BTF

struct pt_regs {
	long orig_ax; // x86
	long ax;
	long cx;
	long ip;
	long r11;
	long flags;
	int syscallno; // arm64
} __attribute__((preserve_access_index));

// The number of the call that registers are of, also when it returns; -1: a tracer skipped the call, or
// it was rt_sigreturn. Reads any registers of the kernel's.
static __always_inline s32 call_in(struct pt_regs *regs)
{
	if (bpf_core_field_exists(regs->orig_ax))
		return BPF_CORE_READ(regs, orig_ax);
	return BPF_CORE_READ(regs, syscallno);
}

// Whether a call has begun and has no result yet. The kernel enters calls with this result on x86;
// elsewhere this is not known, and true.
static __always_inline bool has_no_result(struct pt_regs *regs)
{
	if (!bpf_core_field_exists(regs->orig_ax))
		return true;
	return (s32)BPF_CORE_READ(regs, ax) == -ENOSYS;
}

// The ABI by the bit of thread_info.
static __always_inline u8 abi_by_flag(struct task_struct *task)
{
	u64 word;

	if (bpf_core_field_exists(task->thread_info.status))
		word = BPF_CORE_READ(task, thread_info.status);
	else
		word = BPF_CORE_READ(task, thread_info.flags);
	return word & compat_flag ? ABI_COMPAT : ABI_NATIVE;
}

// Which instruction entered the kernel. SYSCALL leaves two marks in the registers of a 64-bit
// program, which nothing else does but a program that forges them. Where they are missing, a bit
// of thread_info tells a 32-bit call from a 64-bit one.
static __always_inline u8 abi_of(struct pt_regs *regs)
{
	if (bpf_core_field_exists(regs->cx) && regs->cx == regs->ip && regs->r11 == regs->flags)
		return ABI_NATIVE;
	return abi_by_flag((void *)bpf_get_current_task());
}

// The same where the registers are not known. Costs 30 ns.
static __always_inline u8 abi_of_task(void)
{
	u32 word = 0;

	if (compat_offset < 0)
		return ABI_NATIVE;
	bpf_probe_read_kernel(&word, sizeof(word), (void *)bpf_get_current_task() + compat_offset);
	return word & compat_flag ? ABI_COMPAT : ABI_NATIVE;
}

#endif
