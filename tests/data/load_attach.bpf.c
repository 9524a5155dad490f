// One program for each way to attach; each counts the calls of one system call by one process.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

struct sys_enter_args {
	__u64 common;
	long id;
	unsigned long args[6];
};

const volatile __u32 target_pid = 0;
const volatile long target_call = 0;

volatile __u64 tracepoint_hits = 0;
volatile __u64 raw_hits = 0;
volatile __u64 btf_hits = 0;
volatile __u64 sample_hits = 0;
volatile __u64 cookie_seen = 0;

static __always_inline int wanted(long id)
{
	return bpf_get_current_pid_tgid() >> 32 == target_pid && id == target_call;
}

SEC("tp/raw_syscalls/sys_enter")
int on_tracepoint(struct sys_enter_args *ctx)
{
	if (wanted(ctx->id))
		__sync_fetch_and_add(&tracepoint_hits, 1);
	return 0;
}

SEC("?tp/raw_syscalls/sys_enter")
int on_tracepoint_cookie(struct sys_enter_args *ctx)
{
	if (wanted(ctx->id))
		cookie_seen = bpf_get_attach_cookie(ctx);
	return 0;
}

SEC("raw_tp/sys_enter")
int on_raw(struct bpf_raw_tracepoint_args *ctx)
{
	if (wanted(ctx->args[1]))
		__sync_fetch_and_add(&raw_hits, 1);
	return 0;
}

SEC("?raw_tp/sys_enter")
int on_raw_cookie(struct bpf_raw_tracepoint_args *ctx)
{
	if (wanted(ctx->args[1]))
		cookie_seen = bpf_get_attach_cookie(ctx);
	return 0;
}

SEC("tp_btf/sys_enter")
int on_btf(__u64 *ctx)
{
	if (wanted(ctx[1]))
		__sync_fetch_and_add(&btf_hits, 1);
	return 0;
}

SEC("perf_event")
int on_sample(void *ctx)
{
	__sync_fetch_and_add(&sample_hits, 1);
	return 0;
}

SEC("?kprobe/no_such_function")
int on_probe_of_nothing(void *ctx)
{
	return 0;
}

SEC("?usdt/libc.so.6:libc:setjmp")
int on_user_probe(void *ctx)
{
	return 0;
}

SEC("?socket")
int on_packet(void *ctx)
{
	return 0;
}

SEC("?tp")
int nowhere(void *ctx)
{
	return 0;
}

SEC("?tp_btf/no_such_tracepoint")
int on_missing(__u64 *ctx)
{
	return 0;
}
