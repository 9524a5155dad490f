// Counts the system calls of one process, by number, in every place a count can live.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

struct sys_enter_args {
	__u64 common;
	long id;
	unsigned long args[6];
};

struct call {
	__u64 total;
	__u32 last_cpu;
};

const volatile __u32 target_pid = 0;
volatile __u64 calls_seen = 0;
volatile __u32 step = 1;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, struct call);
} calls SEC(".maps");

static __always_inline int ours(void)
{
	return bpf_get_current_pid_tgid() >> 32 == target_pid;
}

SEC("tracepoint/raw_syscalls/sys_enter")
int count_calls(struct sys_enter_args *ctx)
{
	struct call fresh = {}, *call;
	__u64 id = ctx->id;

	if (!ours())
		return 0;
	__sync_fetch_and_add(&calls_seen, step);
	call = bpf_map_lookup_elem(&calls, &id);
	if (!call) {
		bpf_map_update_elem(&calls, &id, &fresh, BPF_NOEXIST);
		call = bpf_map_lookup_elem(&calls, &id);
		if (!call)
			return 0;
	}
	__sync_fetch_and_add(&call->total, 1);
	call->last_cpu = bpf_get_smp_processor_id();
	return 0;
}
