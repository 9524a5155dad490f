// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The six arguments of a call, by the registers that it entered the kernel with.
#ifndef CALL_ARGUMENTS_H
#define CALL_ARGUMENTS_H

#include "call_abi.h"

struct pt_regs___arguments {
	unsigned long di, si, dx, r10, r8, r9; // x86-64
	unsigned long bx, cx, bp;	       // i386: bx, cx, dx, si, di, bp
	u64 regs[31];			       // arm64
	u64 orig_x0;
} __attribute__((preserve_access_index));

static __always_inline void read_call_arguments(u64 *to, struct pt_regs___arguments *regs, u8 abi)
{
	if (!bpf_core_field_exists(regs->di)) {
		to[0] = BPF_CORE_READ(regs, orig_x0);
		to[1] = BPF_CORE_READ(regs, regs[1]);
		to[2] = BPF_CORE_READ(regs, regs[2]);
		to[3] = BPF_CORE_READ(regs, regs[3]);
		to[4] = BPF_CORE_READ(regs, regs[4]);
		to[5] = BPF_CORE_READ(regs, regs[5]);
	} else if (abi == ABI_COMPAT) {
		to[0] = (u32)BPF_CORE_READ(regs, bx);
		to[1] = (u32)BPF_CORE_READ(regs, cx);
		to[2] = (u32)BPF_CORE_READ(regs, dx);
		to[3] = (u32)BPF_CORE_READ(regs, si);
		to[4] = (u32)BPF_CORE_READ(regs, di);
		to[5] = (u32)BPF_CORE_READ(regs, bp);
	} else {
		to[0] = BPF_CORE_READ(regs, di);
		to[1] = BPF_CORE_READ(regs, si);
		to[2] = BPF_CORE_READ(regs, dx);
		to[3] = BPF_CORE_READ(regs, r10);
		to[4] = BPF_CORE_READ(regs, r8);
		to[5] = BPF_CORE_READ(regs, r9);
	}
}

#endif
