// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Counts the packets and bytes that an interface receives, by protocol, before the stack has them.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct traffic {
	__u64 packets, bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 257); // by IPPROTO_*; 256: no IP
	__type(key, __u32);
	__type(value, struct traffic);
} protocols SEC(".maps");

static __always_inline __u32 protocol_of(void *data, void *end)
{
	struct ethhdr *frame = data;
	struct iphdr *ip = (void *)(frame + 1);
	struct ipv6hdr *ip6 = (void *)(frame + 1);

	if ((void *)(frame + 1) > end)
		return 256;
	if (frame->h_proto == bpf_htons(ETH_P_IP) && (void *)(ip + 1) <= end)
		return ip->protocol;
	if (frame->h_proto == bpf_htons(ETH_P_IPV6) && (void *)(ip6 + 1) <= end)
		return ip6->nexthdr;
	return 256;
}

SEC("xdp")
int count_packet(struct xdp_md *context)
{
	void *data = (void *)(long)context->data, *end = (void *)(long)context->data_end;
	__u32 protocol = protocol_of(data, end);
	struct traffic *traffic = bpf_map_lookup_elem(&protocols, &protocol);

	if (traffic) {
		traffic->packets++;
		traffic->bytes += end - data;
	}
	return XDP_PASS;
}
