// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Numbers of tasks, as the pid namespace of who asks has them.
#ifndef PID_NAMESPACE_H
#define PID_NAMESPACE_H

#include "task.h"

CONFIG u64 pid_namespace_dev = 0; // the namespace to number tasks in; 0: the initial one
CONFIG u64 pid_namespace_ino = 0;

#define PID_LEVELS 33 // kernel/pid_namespace.c: MAX_PID_NS_LEVEL, and the initial namespace

// Whether the object was loaded with the kernel's BTF. Without, what reads structs must be dead.
static __always_inline bool kernel_has_types(void)
{
	return bpf_core_type_exists(struct pid);
}

// The level of that namespace among those that a struct pid has numbers in; PID_LEVELS: it is none
// of them. A global function of a scalar, as the loops in stacks.h are. The counter is opaque, as
// clang would make one bound of the two and wait for the counter to equal it: verifiers before
// Linux 6.4 (commit 13fbcee55706) take such a loop for endless.
__noinline u32 level_in(u64 address)
{
	struct pid *pid = (void *)address;
	u32 last;

	if (!pid_namespace_ino || !kernel_has_types())
		return PID_LEVELS;
	last = BPF_CORE_READ(pid, level);
#pragma clang loop unroll(disable)
	for (u32 level = 0; level < PID_LEVELS; level++) {
		struct upid *number;

		OPAQUE(level);
		if (level > last)
			break;
		number = number_at(pid, level);
		if (BPF_CORE_READ(number, ns, ns.inum) == pid_namespace_ino)
			return level;
	}
	return PID_LEVELS;
}

static __always_inline u32 number_in(struct pid *pid, u32 level)
{
	struct upid *number = number_at(pid, level);

	return BPF_CORE_READ(number, nr);
}

// Numbers any task, where that namespace is not the initial one. False: the task is outside of it,
// or over, and gets 0.
static __always_inline bool numbers_of(struct task_struct *task, u32 *tgid, u32 *tid)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	u32 level = level_in((u64)pid);

	*tgid = *tid = 0;
	if (level == PID_LEVELS)
		return false;
	*tid = number_in(pid, level);
	pid = BPF_CORE_READ(task, group_leader, thread_pid);
	*tgid = number_in(pid, level); // all threads of a process are in the same namespaces
	return true;
}

// Numbers the current task, of which bpf_get_current_pid_tgid() says `both`. False: it is outside
// of that namespace, and gets 0. The helper knows no tasks of the namespaces below it; they are
// found in the kernel's structs, by programs that read any (`typed`) and so need its BTF.
static __always_inline bool own_numbers(u64 both, bool typed, u32 *tgid, u32 *tid)
{
	struct bpf_pidns_info info = {};
	long err;

	if (!pid_namespace_ino || !both) { // the idle task has 0 everywhere
		*tgid = both >> 32;
		*tid = both;
		return true;
	}
	err = bpf_get_ns_current_pid_tgid(pid_namespace_dev, pid_namespace_ino, &info,
					  sizeof(info));
	if (err && typed && kernel_has_types())
		return numbers_of((void *)bpf_get_current_task(), tgid, tid);
	*tgid = info.tgid;
	*tid = info.pid;
	return !err;
}

#endif
