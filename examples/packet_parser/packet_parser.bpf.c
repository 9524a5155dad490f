// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Drops DNS answers that are too large, UDP from port 53 with more than `max_size` bytes, and IPv4
// fragments of UDP. Everything else passes. A program worth testing: see test_packet_parser.py.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define DNS 53
#define IP_MORE_FRAGMENTS 0x2000
#define IP_OFFSET 0x1fff

const volatile __u16 max_size = 512; // of a datagram, its header included
volatile __u64 dropped = 0;

struct vlan {
	__be16 tag, type;
};

// What is left of a packet; each step takes a header off its front.
struct cursor {
	void *at, *end;
};

static __always_inline int drop(void)
{
	__sync_fetch_and_add(&dropped, 1);
	return XDP_DROP;
}

static __always_inline __be16 link_layer(struct cursor *cursor)
{
	struct ethhdr *frame = cursor->at;
	struct vlan *vlan = (void *)(frame + 1);

	if ((void *)(frame + 1) > cursor->end)
		return 0;
	cursor->at = frame + 1;
	if (frame->h_proto != bpf_htons(ETH_P_8021Q))
		return frame->h_proto;
	if ((void *)(vlan + 1) > cursor->end)
		return 0;
	cursor->at = vlan + 1;
	return vlan->type;
}

SEC("xdp")
int parse(struct xdp_md *context)
{
	struct cursor cursor = {(void *)(long)context->data, (void *)(long)context->data_end};
	__be16 type = link_layer(&cursor);
	struct iphdr *ip = cursor.at;
	struct ipv6hdr *ip6 = cursor.at;
	struct udphdr *udp;

	if (type == bpf_htons(ETH_P_IP)) {
		if ((void *)(ip + 1) > cursor.end || ip->ihl < 5 || ip->protocol != IPPROTO_UDP)
			return XDP_PASS;
		if (ip->frag_off & bpf_htons(IP_MORE_FRAGMENTS | IP_OFFSET))
			return drop();
		cursor.at += ip->ihl * 4;
	} else if (type == bpf_htons(ETH_P_IPV6)) {
		if ((void *)(ip6 + 1) > cursor.end || ip6->nexthdr != IPPROTO_UDP)
			return XDP_PASS;
		cursor.at = ip6 + 1;
	} else {
		return XDP_PASS;
	}
	udp = cursor.at;
	if ((void *)(udp + 1) > cursor.end)
		return XDP_PASS;
	if (udp->source == bpf_htons(DNS) && bpf_ntohs(udp->len) > max_size)
		return drop();
	return XDP_PASS;
}
