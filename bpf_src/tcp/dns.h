// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Answers of name servers that pass this machine in plain text: UDP from port 53.
#ifndef TCP_DNS_H
#define TCP_DNS_H

#include "records.h"
#include "socket.h"

#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd
#define IPPROTO_UDP 17
#define DNS_PORT 53
#define UDP_HEADER 8
#define IPV6_HEADER 40

struct net_device {
	possible_net_t nd_net;
} __attribute__((preserve_access_index));

struct sk_buff {
	unsigned int len;
	unsigned int data_len;
	__be16 protocol;
	unsigned char *data;
	struct net_device *dev;
} __attribute__((preserve_access_index));

// Where UDP begins behind the header of IP; 0: it is another protocol.
static __always_inline u32 udp_at(struct sk_buff *skb, unsigned char *data)
{
	u16 protocol = port_of(BPF_CORE_READ(skb, protocol));
	u8 header[10] = {};

	if (bpf_probe_read_kernel(header, sizeof(header), data))
		return 0;
	if (protocol == ETH_P_IP) {
		if (header[9] != IPPROTO_UDP || (header[6] & 0x1f) || header[7])
			return 0; // behind the first fragment
		return (header[0] & 15) * 4;
	}
	return protocol == ETH_P_IPV6 && header[6] == IPPROTO_UDP ? IPV6_HEADER : 0;
}

static __always_inline void send_answer(unsigned char *message, u32 size, u32 netns)
{
	struct dns_answer *answer = bpf_ringbuf_reserve(&events, sizeof(*answer), 0);
	u32 part = size < DNS_SIZE ? size : DNS_SIZE;

	if (!answer) {
		__sync_fetch_and_add(&events_full, 1);
		return;
	}
	__builtin_memset(&answer->head, 0, sizeof(answer->head));
	answer->head.time_ns = bpf_ktime_get_ns();
	answer->head.kind = TCP_NAME;
	answer->size = size;
	answer->netns = netns;
	OPAQUE(part);
	if (part > DNS_SIZE || bpf_probe_read_kernel(answer->message, part, message))
		answer->size = 0;
	bpf_ringbuf_submit(answer, 0);
}

// The program sees packets when the IP header is next.
static __always_inline int look_for_answer(struct sk_buff *skb)
{
	unsigned char *data = BPF_CORE_READ(skb, data);
	u32 start = udp_at(skb, data), linear;
	__be16 port = 0;

	if (!start)
		return 0;
	bpf_probe_read_kernel(&port, sizeof(port), data + start);
	if (port_of(port) != DNS_PORT)
		return 0;
	linear = BPF_CORE_READ(skb, len) - BPF_CORE_READ(skb, data_len);
	if (linear > start + UDP_HEADER)
		send_answer(data + start + UDP_HEADER, linear - start - UDP_HEADER,
			    BPF_CORE_READ(skb, dev, nd_net.net, ns.inum));
	return 0;
}

#endif
