// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Whether seccomp ends a thread in its call.
#ifndef SECCOMP_H
#define SECCOMP_H

#include "call_abi.h"

#define SECCOMP_MODE_DEAD 3 // seccomp ends the thread (Linux 5.17, commit 495ac3069a66)

CONFIG bool task_pt_regs = true; // bpf_task_pt_regs() is there (Linux 5.15, commit dd6e10fbd9fb)

struct seccomp {
	int mode;
} __attribute__((preserve_access_index));

struct task_struct___seccomp {
	struct seccomp seccomp;
} __attribute__((preserve_access_index));

// The registers of the current thread, which ends, if seccomp ends it in a call: that call has no
// return, and was not entered as far as tracepoints go. NULL: it ends otherwise.
static __always_inline struct pt_regs *call_ended_by_seccomp(void)
{
	struct task_struct___seccomp *task = (void *)bpf_get_current_task();
	struct pt_regs *regs;

	if (!task_pt_regs || !bpf_core_field_exists(task->seccomp.mode))
		return NULL;
	if (BPF_CORE_READ(task, seccomp.mode) != SECCOMP_MODE_DEAD)
		return NULL;
	regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	return has_no_result(regs) ? regs : NULL;
}

#endif
