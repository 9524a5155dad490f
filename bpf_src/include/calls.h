// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// System calls from their start to their end: a thread is in one at a time, and writes its own.
#ifndef CALLS_H
#define CALLS_H

#include "call_arguments.h"
#include "cpus.h"

CONFIG bool task_pt_regs = true; // bpf_task_pt_regs() is there (Linux 5.15, commit dd6e10fbd9fb)

// What the tracepoints syscalls/sys_enter_* and sys_exit_* pass behind their eight common bytes.
// The kernel runs programs there with preemption off (kernel/trace/trace_syscalls.c).
struct call_start {
	u64 common;
	s64 nr;
	u64 arguments[6];
};

struct call_end {
	u64 common;
	s64 nr;
	s64 result;
};

struct call {
	u64 start_ns; // 0: not known
	u64 path;     // an address in the task's memory
	u64 flags;
	s32 dirfd;
	u32 tgid; // in the pid namespace of who asks
	u32 tid;
	u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u32); // thread, in the initial namespace
	__type(value, struct call);
} calls SEC(".maps");

static __always_inline bool begin_call(struct call *call)
{
	u32 thread = bpf_get_current_pid_tgid();
	int err; // before Linux 6.4 the upper half of what an inlined update returns is not set

	call->start_ns = bpf_ktime_get_ns();
	err = bpf_map_update_elem(&calls, &thread, call, BPF_ANY);
	return !err;
}

// The arguments of a call that returns without a start: it was in progress when the run began, or
// seccomp or a tracer refused it before the kernel passed its first tracepoint. False: they are not
// known, or it cannot be told on which CPU it began.
static __always_inline bool unseen_arguments(u64 *arguments)
{
	if (!task_pt_regs || has_cpus)
		return false;
	read_call_arguments(arguments, (void *)bpf_task_pt_regs(bpf_get_current_task_btf()),
			    ABI_NATIVE);
	return true;
}

// Takes the call that the current thread is in. False: its start was not traced, or not wanted.
static __always_inline bool end_call(struct call *call)
{
	u32 thread = bpf_get_current_pid_tgid();
	struct call *begun = bpf_map_lookup_elem(&calls, &thread);

	if (!begun)
		return false;
	*call = *begun;
	bpf_map_delete_elem(&calls, &thread);
	return true;
}

#endif
