// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// An iterator: the kernel runs it once for each thread when its file is read.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct mm_struct {
	int map_count;
} __attribute__((preserve_access_index));

struct task_struct {
	int pid, tgid;
	struct task_struct *real_parent;
	struct mm_struct *mm;
	unsigned long nvcsw, nivcsw;
	char comm[16];
} __attribute__((preserve_access_index));

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} __attribute__((preserve_access_index));

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} __attribute__((preserve_access_index));

struct thread {
	__u64 slept, preempted; // how often it gave the CPU up, and lost it
	__u32 pid, tid, parent;
	__s32 mappings; // of memory; -1: a kernel thread, which has none
	char comm[16];
};

// A struct that no map or function of the object has is in its BTF only if a variable keeps it.
struct thread *thread_anchor;

SEC("iter/task")
int on_task(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;
	struct thread thread = {};

	if (!task) // the end
		return 0;
	thread.pid = task->tgid;
	thread.tid = task->pid;
	thread.parent = task->real_parent->tgid;
	thread.slept = task->nvcsw;
	thread.preempted = task->nivcsw;
	thread.mappings = task->mm ? task->mm->map_count : -1;
	bpf_probe_read_kernel_str(thread.comm, sizeof(thread.comm), task->comm);
	bpf_seq_write(context->meta->seq, &thread, sizeof(thread));
	return 0;
}
