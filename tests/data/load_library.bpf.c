// What docs/library.md calls opensnoop.bpf.o: a program, map or variable for each of its examples.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

const volatile __u32 target_pid = 0;
volatile __u64 dropped = 0;

struct event {
	__u32 pid;
	char comm[16];
};

struct count {
	__u64 total;
	__u32 last_cpu;
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
	__type(value, struct event);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, struct count);
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} stats SEC(".maps");

SEC("raw_tp/sys_enter")
int on_open(void *ctx)
{
	struct count count = {.total = 1};
	struct event event = {};
	__u32 key = 17;

	event.pid = bpf_get_current_pid_tgid() >> 32;
	if (event.pid != target_pid)
		return 0;
	bpf_get_current_comm(event.comm, sizeof(event.comm));
	if (bpf_ringbuf_output(&events, &event, sizeof(event), 0))
		dropped++;
	bpf_map_update_elem(&counts, &key, &count, BPF_NOEXIST);
	return 0;
}

SEC("perf_event")
int on_sample(void *ctx)
{
	return 0;
}

SEC("socket")
int filter(struct __sk_buff *packet)
{
	return packet->len;
}

struct task_struct {
	int pid;
	char comm[16];
} __attribute__((preserve_access_index));

struct bpf_iter_meta {
	void *seq;
} __attribute__((preserve_access_index));

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} __attribute__((preserve_access_index));

struct task_record {
	__u32 pid;
	char comm[16];
} *task_record_anchor;

SEC("?iter/task")
int list_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct task_record record = {};

	if (!task)
		return 0;
	record.pid = task->pid;
	bpf_probe_read_kernel_str(record.comm, sizeof(record.comm), task->comm);
	bpf_seq_write(ctx->meta->seq, &record, sizeof(record));
	return 0;
}
