// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Two rings with records of two types: programs that were started, and processes that ended.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct task_struct {
	int pid, tgid;
	int exit_code;
	__u64 start_time;
} __attribute__((preserve_access_index));

struct started {
	__u32 pid;
	char comm[16];
};

struct ended {
	__u64 lived_ns;
	__u32 pid;
	__u32 status; // as wait(2) has it
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
	__type(value, struct started);
} starts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
	__type(value, struct ended);
} ends SEC(".maps");

// Processes that have a start in the ring: only these get an end.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, __u32); // process
	__type(value, __u8);
} seen SEC(".maps");

volatile __u64 lost = 0;

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task)
{
	struct started event = {.pid = task->tgid};
	__u8 yes = 1;

	bpf_get_current_comm(event.comm, sizeof(event.comm));
	if (bpf_ringbuf_output(&starts, &event, sizeof(event), 0) ||
	    bpf_map_update_elem(&seen, &event.pid, &yes, BPF_ANY))
		__sync_fetch_and_add(&lost, 1);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct ended event = {.pid = task->tgid, .status = task->exit_code};

	// a thread, not its process; or no start of it was seen
	if (task->pid != task->tgid || bpf_map_delete_elem(&seen, &event.pid))
		return 0;
	event.lived_ns = bpf_ktime_get_ns() - task->start_time;
	if (bpf_ringbuf_output(&ends, &event, sizeof(event), 0))
		__sync_fetch_and_add(&lost, 1);
	return 0;
}
