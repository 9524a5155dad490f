// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The parts of the kernel's tasks that are used here, found at load time by their names.
#ifndef TASK_H
#define TASK_H

#include "purebpf.h"
#include <bpf/bpf_core_read.h>

struct ns_common {
	unsigned int inum;
} __attribute__((preserve_access_index));

struct pid_namespace {
	struct ns_common ns;
} __attribute__((preserve_access_index));

struct upid {
	int nr;
	struct pid_namespace *ns;
} __attribute__((preserve_access_index));

struct pid {
	unsigned int level;
	struct upid numbers[1];
} __attribute__((preserve_access_index));

struct thread_info {
	unsigned long flags;
	u32 status; // x86
	u32 cpu;
} __attribute__((preserve_access_index));

struct mm_struct;

struct mnt_namespace {
	struct ns_common ns;
} __attribute__((preserve_access_index));

struct nsproxy {
	struct mnt_namespace *mnt_ns;
} __attribute__((preserve_access_index));

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	unsigned int flags;
	unsigned int on_cpu; // one byte on some kernels (7.2)
	int pid;
	int tgid;
	struct mm_struct *mm;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct nsproxy *nsproxy;
	u64 start_time;
	char comm[TASK_COMM_LEN];
} __attribute__((preserve_access_index));

struct task_struct___before_5_14 { // commit 2f064a59a11f, "sched: Change task_struct::state"
	long state;
	unsigned int cpu; // before Linux 5.16: commit bcf9033e5449 moved it into thread_info
} __attribute__((preserve_access_index));

// What a program at "iter/task" gets.
struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} __attribute__((preserve_access_index));

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} __attribute__((preserve_access_index));

// include/linux/sched.h, since Linux 4.14
#define PF_KTHREAD 0x00200000
#define TASK_INTERRUPTIBLE 0x1
#define TASK_UNINTERRUPTIBLE 0x2
#define TASK_STOPPED 0x4
#define TASK_TRACED 0x8
#define TASK_PARKED 0x40
#define TASK_IS_DEAD 0xb0 // EXIT_DEAD, EXIT_ZOMBIE, TASK_DEAD
#define TASK_WAKING 0x200
#define TASK_NOLOAD 0x400

// TASK_* bits; none: it runs, or waits for a CPU.
static __always_inline u64 state_bits(struct task_struct *task)
{
	struct task_struct___before_5_14 *old = (void *)task;

	if (bpf_core_field_exists(task->__state))
		return BPF_CORE_READ(task, __state);
	return BPF_CORE_READ(old, state);
}

// A task's number in its pid namespace of a level, 0 being the initial one: a struct upid.
static __always_inline struct upid *number_at(struct pid *pid, u32 level)
{
	return (void *)pid + bpf_core_field_offset(pid->numbers) +
	       level * bpf_core_type_size(struct upid);
}

// The inode of the innermost of a task's pid namespaces.
static __always_inline u32 pid_namespace_of(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	u32 level = BPF_CORE_READ(pid, level);
	struct upid *number = number_at(pid, level);

	return BPF_CORE_READ(number, ns, ns.inum);
}

#endif
