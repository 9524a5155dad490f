// Programs of routes: each counts the packets that it sees, and drops those of one port, or tag.
#include <linux/bpf.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/seg6.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define FORBIDDEN 9
#define SEGMENTS 4

__u64 packets;

static __always_inline int decide(struct __sk_buff *packet)
{
	void *data = (void *)(long)packet->data, *end = (void *)(long)packet->data_end;
	struct iphdr *ip = data;
	struct udphdr *udp = (void *)(ip + 1);

	if ((void *)(udp + 1) > end || ip->protocol != IPPROTO_UDP)
		return BPF_OK;
	__sync_fetch_and_add(&packets, 1);
	return udp->dest == bpf_htons(FORBIDDEN) ? BPF_DROP : BPF_OK;
}

SEC("lwt_in")
int arriving(struct __sk_buff *packet)
{
	return decide(packet);
}

SEC("lwt_out")
int sent(struct __sk_buff *packet)
{
	return decide(packet);
}

SEC("lwt_seg6local")
int routed(struct __sk_buff *packet)
{
	void *data = (void *)(long)packet->data, *end = (void *)(long)packet->data_end;
	struct ipv6_sr_hdr *segments = data + sizeof(struct ipv6hdr);

	if ((void *)(segments + 1) > end || segments->type != SEGMENTS)
		return BPF_OK;
	__sync_fetch_and_add(&packets, 1);
	return segments->tag == bpf_htons(FORBIDDEN) ? BPF_DROP : BPF_OK;
}

SEC("lwt_xmit")
int leaving(struct __sk_buff *packet)
{
	return decide(packet);
}

char LICENSE[] SEC("license") = "GPL";
