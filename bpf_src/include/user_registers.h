// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The user registers of a sample's task, on x86_64 and arm64.
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

// The bits of an address of code on arm64, below those that may sign it (PAC); 0: this is x86_64.
// User space says so, and the verifier removes what is of the other machine.
CONFIG u64 arm64_code_bits = 0;

// struct user_pt_regs of arm64 (arch/arm64/include/uapi/asm/ptrace.h), with which struct pt_regs and
// the context of a perf_event program begin: x0 to x30, and these.
enum arm64_register {
	ARM64_SP = 31,
	ARM64_PC = 32,
	ARM64_PSTATE = 33
};

#define ARM64_MODE 0x0f // of PSTATE: 0 is user mode
#define ARM64_32_BITS 0x10

// A word of a context at a constant offset, as verifiers want it: clang would choose among offsets.
#define WORD(ctx, offset)                                                                     \
	({                                                                                    \
		u64 word_;                                                                    \
		asm volatile("%0 = *(u64 *)(%1 + %2)" : "=r"(word_) : "r"(ctx), "i"(offset)); \
		word_;                                                                        \
	})
#define REGISTER(ctx, name) WORD(ctx, __builtin_offsetof(struct registers, name))

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

// Registers of arm64 under the names that walks and user space know: of the same use where there is
// one, else those that call frame information may name (purebpf/unwind/sent_registers.py).
#define TAKE_ARM64(to, word)               \
	({                                 \
		(to)->ip = word(ARM64_PC); \
		(to)->sp = word(ARM64_SP); \
		(to)->bp = word(29);       \
		(to)->bx = word(30);       \
		(to)->r12 = word(19);      \
		(to)->r13 = word(20);      \
		(to)->r14 = word(21);      \
		(to)->r15 = word(22);      \
		(to)->r8 = word(23);       \
		(to)->r9 = word(24);       \
		(to)->r10 = word(25);      \
		(to)->r11 = word(26);      \
		(to)->ax = word(27);       \
		(to)->cx = word(28);       \
		(to)->di = word(0);        \
		(to)->orig_ax = word(8);   \
		(to)->si = word(1);        \
		(to)->dx = word(9);        \
		(to)->flags = word(12);    \
		(to)->ss = word(15);       \
	})

static __always_inline u64 kernel_word(const void *address)
{
	u64 word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), address);
	return word;
}

// A 32-bit task has its stack pointer in r13, and no frame pointer that could be followed.
static __always_inline void mark_arm64(struct registers *to, u64 pstate, u64 r13)
{
	if (pstate & ARM64_32_BITS) {
		to->cs = 0;
		to->sp = r13;
		to->bp = 0;
	} else {
		to->cs = USER_CS;
	}
}

#define SAVED_WORD(number) kernel_word(&user[number])
#define CONTEXT_WORD(number) WORD(ctx, (number) * sizeof(u64))

// Not inline: there are many programs.
static __noinline bool saved_arm64_registers(u64 *user, struct registers *to)
{
	u64 pstate;

	if (bpf_probe_read_kernel(&pstate, sizeof(pstate), &user[ARM64_PSTATE]) ||
	    pstate & ARM64_MODE)
		return false;
	TAKE_ARM64(to, SAVED_WORD);
	mark_arm64(to, pstate, SAVED_WORD(13));
	return to->sp;
}

static __noinline int sampled_arm64_registers(struct registers *ctx, struct registers *to)
{
	TAKE_ARM64(to, CONTEXT_WORD);
	mark_arm64(to, CONTEXT_WORD(ARM64_PSTATE), CONTEXT_WORD(13));
	return 0;
}

// The registers that a task entered the kernel with, from its struct pt_regs. False: it has none.
//
// A thread of the kernel has zeros there, one that works for a process (io_uring) has no sp and ip
// (arch/x86/kernel/process.c, copy_thread), or has not user mode (that of arm64).
static __always_inline bool registers_at(void *user, struct registers *to)
{
	if (!arm64_code_bits)
		return user && !bpf_probe_read_kernel(to, sizeof(*to), user) && (to->cs & 3) == 3 &&
		       to->sp;
	return user && saved_arm64_registers(user, to);
}

// Those of the current task.
static __always_inline bool saved_registers(struct registers *to)
{
	// Linux 5.15 (dd6e10fbd9fb): before, an offset from the end of the stack, which moved since.
	return registers_at((void *)bpf_task_pt_regs(bpf_get_current_task_btf()), to);
}

// Whether a sample interrupted code of the user.
static __always_inline bool is_of_user(struct registers *ctx)
{
	if (arm64_code_bits)
		return !(WORD(ctx, ARM64_PSTATE * sizeof(u64)) & ARM64_MODE);
	return (REGISTER(ctx, cs) & 3) == 3;
}

// Those of a sample. False: a task of the kernel, or its registers could not be read.
static __always_inline bool user_registers(struct registers *ctx, struct registers *to)
{
	if (!is_of_user(ctx))
		return saved_registers(to);
	if (!arm64_code_bits) {
		__builtin_memcpy(to, ctx, sizeof(*to));
		return true;
	}
	sampled_arm64_registers(ctx, to);
	return true;
}

#endif
