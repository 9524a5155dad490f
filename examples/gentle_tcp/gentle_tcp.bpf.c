// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// A congestion control of TCP: Reno that gives way by an eighth when a packet is lost, not by half.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

// Defined, be it without members: a kernel function that takes one must be declared with a struct.
struct sock {};

struct tcp_sock {
	__u32 snd_cwnd, prior_cwnd;
} __attribute__((preserve_access_index));

// The members that are filled in; the kernel's struct has more, which stay empty.
struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	__u32 (*undo_cwnd)(struct sock *sk);
	void (*init)(struct sock *sk);
	char name[16];
};

// Functions of the kernel that congestion controls may call.
extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

volatile __u64 connections = 0;
volatile __u64 reductions = 0;

SEC("struct_ops/on_init")
void BPF_PROG(on_init, struct sock *sk)
{
	__sync_fetch_and_add(&connections, 1);
}

SEC("struct_ops/on_loss")
__u32 BPF_PROG(on_loss, struct sock *sk)
{
	// the verifier knows that the socket of a congestion control is one of TCP
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	__u32 window = tp->snd_cwnd;

	__sync_fetch_and_add(&reductions, 1);
	window -= window >> 3;
	return window < 2 ? 2 : window;
}

SEC("struct_ops/on_ack")
void BPF_PROG(on_ack, struct sock *sk, __u32 ack, __u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops/on_undo")
__u32 BPF_PROG(on_undo, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops gentle = {
	.init = (void *)on_init,
	.ssthresh = (void *)on_loss,
	.cong_avoid = (void *)on_ack,
	.undo_cwnd = (void *)on_undo,
	.name = "bpf_gentle",
};
