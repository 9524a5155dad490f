// A congestion control of TCP, twice: with the members that the kernel wants, and with one it has
// never heard of. The functions do what Reno does, and count.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

struct sock;

struct tcp_congestion_ops {
	__u32 flags;
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	__u32 (*undo_cwnd)(struct sock *sk);
	void (*init)(struct sock *sk);
	char name[16];
};

struct tcp_congestion_ops___newer {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	__u32 (*undo_cwnd)(struct sock *sk);
	void (*in_the_future)(struct sock *sk);
	__u64 future_flags;
	char name[16];
};

struct {
	__u64 init, ssthresh, cong_avoid, undo_cwnd, other_init, future;
} seen;

SEC("struct_ops/on_init")
void BPF_PROG(on_init, struct sock *sk)
{
	__sync_fetch_and_add(&seen.init, 1);
}

SEC("?struct_ops/on_other_init")
void BPF_PROG(on_other_init, struct sock *sk)
{
	__sync_fetch_and_add(&seen.other_init, 1);
}

SEC("struct_ops/on_ssthresh")
__u32 BPF_PROG(on_ssthresh, struct sock *sk)
{
	__sync_fetch_and_add(&seen.ssthresh, 1);
	return 2;
}

SEC("struct_ops/on_cong_avoid")
void BPF_PROG(on_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	__sync_fetch_and_add(&seen.cong_avoid, 1);
}

SEC("struct_ops/on_undo_cwnd")
__u32 BPF_PROG(on_undo_cwnd, struct sock *sk)
{
	__sync_fetch_and_add(&seen.undo_cwnd, 1);
	return 10;
}

SEC("struct_ops/in_the_future")
void BPF_PROG(in_the_future, struct sock *sk)
{
	__sync_fetch_and_add(&seen.future, 1);
}

SEC(".struct_ops")
struct tcp_congestion_ops plain = {
	.init = (void *)on_init,
	.ssthresh = (void *)on_ssthresh,
	.cong_avoid = (void *)on_cong_avoid,
	.undo_cwnd = (void *)on_undo_cwnd,
	.name = "purebpf_plain",
};

SEC("?.struct_ops.link")
struct tcp_congestion_ops linked = {
	.init = (void *)on_init,
	.ssthresh = (void *)on_ssthresh,
	.cong_avoid = (void *)on_cong_avoid,
	.undo_cwnd = (void *)on_undo_cwnd,
	.name = "purebpf_linked",
};

SEC("?.struct_ops.link")
struct tcp_congestion_ops successor = {
	.ssthresh = (void *)on_ssthresh,
	.cong_avoid = (void *)on_cong_avoid,
	.undo_cwnd = (void *)on_undo_cwnd,
	.name = "purebpf_linked",
};

SEC("?.struct_ops")
struct tcp_congestion_ops___newer newer = {
	.ssthresh = (void *)on_ssthresh,
	.cong_avoid = (void *)on_cong_avoid,
	.undo_cwnd = (void *)on_undo_cwnd,
	.in_the_future = (void *)in_the_future,
	.name = "purebpf_newer",
};

char LICENSE[] SEC("license") = "GPL";
