// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// A record for each program that was started.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define MAX_ARGUMENTS 512

// Only the members that are read here; CO-RE finds where the running kernel has them.
struct mm_struct {
	unsigned long arg_start, arg_end;
} __attribute__((preserve_access_index));

struct task_struct {
	int tgid;
	struct task_struct *real_parent;
	struct mm_struct *mm;
} __attribute__((preserve_access_index));

struct started {
	__u32 pid, ppid, uid;
	__u32 size; // of the arguments, in bytes; more than MAX_ARGUMENTS means that they were cut
	char comm[16];
	__u8 arguments[MAX_ARGUMENTS]; // each ends with a NUL
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
	__type(value, struct started);
} events SEC(".maps");

volatile __u64 lost = 0;

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task)
{
	struct started *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	unsigned long start = task->mm->arg_start, size = task->mm->arg_end - start;

	if (!event) {
		__sync_fetch_and_add(&lost, 1);
		return 0;
	}
	event->pid = task->tgid;
	event->ppid = task->real_parent->tgid;
	event->uid = bpf_get_current_uid_gid();
	event->size = size;
	bpf_get_current_comm(event->comm, sizeof(event->comm));
	if (size > MAX_ARGUMENTS)
		size = MAX_ARGUMENTS;
	// the new program's memory is in place already, and its arguments were written just now
	if (bpf_probe_read_user(event->arguments, size, (void *)start))
		event->size = 0;
	bpf_ringbuf_submit(event, 0);
	return 0;
}
