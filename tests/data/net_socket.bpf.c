// Programs of sockets and network namespaces; each counts its runs.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

volatile __u64 hits = 0;
volatile __u32 keep = 0xffff; // bytes of a packet that a filter lets through
volatile __u32 chosen = 0;    // the socket of a port
volatile __u16 steered = 0;   // the port whose packets go to another one's socket

struct {
	__uint(type, BPF_MAP_TYPE_REUSEPORT_SOCKARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u64);
} port SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SOCKMAP);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u64);
} sockets SEC(".maps");

SEC("socket") int filter(struct __sk_buff *skb)
{
	__sync_fetch_and_add(&hits, 1);
	return keep;
}

SEC("socket") int pick(struct __sk_buff *skb)
{
	__sync_fetch_and_add(&hits, 1);
	return chosen;
}

SEC("sk_reuseport") int select(struct sk_reuseport_md *ctx)
{
	__u32 index = chosen;

	__sync_fetch_and_add(&hits, 1);
	bpf_sk_select_reuseport(ctx, &port, &index, 0);
	return SK_PASS;
}

SEC("sk_lookup") int steer(struct bpf_sk_lookup *ctx)
{
	struct bpf_sock *sk;
	__u32 index = 0;

	if (ctx->local_port != steered)
		return SK_PASS;
	__sync_fetch_and_add(&hits, 1);
	sk = bpf_map_lookup_elem(&sockets, &index);
	if (sk) {
		bpf_sk_assign(ctx, sk, 0);
		bpf_sk_release(sk);
	}
	return SK_PASS;
}

SEC("?sk_lookup") int pass(struct bpf_sk_lookup *ctx)
{
	return SK_PASS;
}

SEC("flow_dissector") int dissect(struct __sk_buff *skb)
{
	__sync_fetch_and_add(&hits, 1);
	return BPF_OK;
}

SEC("sk_msg") int message(struct sk_msg_md *msg)
{
	__sync_fetch_and_add(&hits, 1);
	return SK_PASS;
}

SEC("sk_skb/stream_parser") int parse(struct __sk_buff *skb)
{
	__sync_fetch_and_add(&hits, 1);
	return skb->len;
}

// Back to the sender.
SEC("sk_skb/stream_verdict") int echo(struct __sk_buff *skb)
{
	__sync_fetch_and_add(&hits, 1);
	return bpf_sk_redirect_map(skb, &sockets, 0, 0);
}

SEC("sk_skb/verdict") int verdict(struct __sk_buff *skb)
{
	__sync_fetch_and_add(&hits, 1);
	return bpf_sk_redirect_map(skb, &sockets, 0, 0);
}

SEC("sk_skb") int bare(struct __sk_buff *skb)
{
	__sync_fetch_and_add(&hits, 1);
	return bpf_sk_redirect_map(skb, &sockets, 0, 0);
}
