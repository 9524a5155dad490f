// Streams two types of record through one ring: entries and returns of one process's system calls.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

const volatile __u32 tgid = 0;

enum kind {
	ENTERED,
	RETURNED,
};

struct entered {
	enum kind kind;
	__u32 nr;
};

struct returned {
	enum kind kind;
	__u32 cpu;
	__s64 result;
};

struct entered *entered_anchor;
struct returned *returned_anchor;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} calls SEC(".maps");

SEC("raw_tp/sys_enter")
int on_enter(struct bpf_raw_tracepoint_args *ctx)
{
	struct entered record = {.kind = ENTERED, .nr = ctx->args[1]};

	if (bpf_get_current_pid_tgid() >> 32 == tgid)
		bpf_ringbuf_output(&calls, &record, sizeof(record), BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("raw_tp/sys_exit")
int on_return(struct bpf_raw_tracepoint_args *ctx)
{
	struct returned record = {.kind = RETURNED, .result = ctx->args[1]};

	record.cpu = bpf_get_smp_processor_id();
	if (bpf_get_current_pid_tgid() >> 32 == tgid)
		bpf_ringbuf_output(&calls, &record, sizeof(record), BPF_RB_NO_WAKEUP);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
