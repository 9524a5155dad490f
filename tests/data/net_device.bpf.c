// Programs of network interfaces and of netfilter. Each counts the packets of one ethertype, or,
// for netfilter, all of them; what happens to a packet is `answer`.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

volatile __u64 hits = 0;
volatile __u16 wanted = ETH_P_IP;
volatile __u32 answer = 0;
volatile __u32 order[8]; // the numbers of the ordered programs, as they ran
volatile __u32 ran = 0;

static __always_inline int is_wanted(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *frame = data;

	return (void *)(frame + 1) <= end && frame->h_proto == bpf_htons(wanted);
}

static __always_inline int on_frame(struct xdp_md *ctx)
{
	if (!is_wanted(ctx))
		return XDP_PASS;
	__sync_fetch_and_add(&hits, 1);
	return answer;
}

SEC("xdp") int frame(struct xdp_md *ctx) { return on_frame(ctx); }
SEC("xdp") int other_frame(struct xdp_md *ctx) { return on_frame(ctx); }
SEC("xdp.frags") int long_frame(struct xdp_md *ctx) { return on_frame(ctx); }
SEC("?xdp/devmap") int of_devmap(struct xdp_md *ctx) { return on_frame(ctx); }
SEC("?xdp/cpumap") int of_cpumap(struct xdp_md *ctx) { return on_frame(ctx); }

static __always_inline int on_packet(struct __sk_buff *skb)
{
	if (skb->protocol == bpf_htons(wanted))
		__sync_fetch_and_add(&hits, 1);
	return answer;
}

SEC("tc") int packet(struct __sk_buff *skb) { return on_packet(skb); }
SEC("tcx/ingress") int entering(struct __sk_buff *skb) { return on_packet(skb); }
SEC("tc/egress") int leaving(struct __sk_buff *skb) { return on_packet(skb); }
SEC("?netkit/primary") int from_primary(struct __sk_buff *skb) { return on_packet(skb); }
SEC("?netkit/peer") int from_peer(struct __sk_buff *skb) { return on_packet(skb); }
SEC("?action") int action(struct __sk_buff *skb) { return on_packet(skb); }

SEC("?netfilter") int filter(void *ctx)
{
	__sync_fetch_and_add(&hits, 1);
	return answer & 1;
}

static __always_inline int took_turn(struct __sk_buff *skb, __u32 number)
{
	if (skb->protocol == bpf_htons(wanted)) {
		if (ran < 8)
			order[ran & 7] = number;
		ran += 1;
	}
	return -1; // TC_ACT_UNSPEC: on to the next program
}

SEC("tc") int first(struct __sk_buff *skb) { return took_turn(skb, 1); }
SEC("tc") int second(struct __sk_buff *skb) { return took_turn(skb, 2); }
SEC("tc") int third(struct __sk_buff *skb) { return took_turn(skb, 3); }

// Where frames are sent on to: another interface, another CPU, a socket.
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP_HASH);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, struct bpf_devmap_val);
} devices SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_CPUMAP);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, struct bpf_cpumap_val);
} cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

SEC("?xdp") int to_device(struct xdp_md *ctx)
{
	on_frame(ctx);
	return bpf_redirect_map(&devices, 7, XDP_PASS);
}

SEC("?xdp") int to_cpu(struct xdp_md *ctx)
{
	on_frame(ctx);
	return bpf_redirect_map(&cpus, 0, XDP_PASS);
}

SEC("?xdp") int to_socket(struct xdp_md *ctx)
{
	return is_wanted(ctx) ? bpf_redirect_map(&sockets, 0, XDP_PASS) : XDP_PASS;
}
