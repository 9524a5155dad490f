// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Questions to name servers, and answers, that pass this machine in plain text: UDP, port 53.
#ifndef TCP_DNS_H
#define TCP_DNS_H

#include "emit.h"

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
	u16 network_header; // behind head
	unsigned char *head;
	unsigned char *data;
	struct net_device *dev;
	struct sock *sk;
} __attribute__((preserve_access_index));

struct udp_start {
	__be16 source;
	__be16 target;
	u16 size;
	u16 checksum;
	u16 question; // the number of the message, which its answer repeats
};

struct question_key {
	u32 netns;
	u16 port; // who asks
	u16 question;
};

struct question {
	u64 since_ns;
	struct owner owner;
};

// What was asked and not answered yet. The oldest goes when there is no room.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct question_key);
	__type(value, struct question);
} questions SEC(".maps");

static __always_inline u32 netns_of(struct sk_buff *skb)
{
	return BPF_CORE_READ(skb, dev, nd_net.net, ns.inum);
}

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

// A packet leaves. Only in the process that sends it has it a socket: routers have none.
static __always_inline int look_for_question(struct sk_buff *skb)
{
	unsigned char *data = BPF_CORE_READ(skb, head) + BPF_CORE_READ(skb, network_header);
	u32 start = udp_at(skb, data);
	struct udp_start udp = {};
	struct question_key key = {};
	struct question question = {};

	if (!start || bpf_probe_read_kernel(&udp, sizeof(udp), data + start))
		return 0;
	if (port_of(udp.target) != DNS_PORT)
		return 0;
	key.netns = netns_of(skb);
	key.port = udp.source;
	key.question = udp.question;
	question.since_ns = bpf_ktime_get_ns();
	if (BPF_CORE_READ(skb, sk))
		own(&question.owner);
	// the first of several that ask again
	bpf_map_update_elem(&questions, &key, &question, BPF_NOEXIST);
	return 0;
}

static __always_inline void put_question(struct dns_answer *answer, struct udp_start *udp)
{
	struct question_key key = {};
	struct question *question;

	key.netns = answer->netns;
	key.port = udp->target;
	key.question = udp->question;
	question = bpf_map_lookup_elem(&questions, &key);
	if (!question)
		return;
	answer->took_ns = answer->head.time_ns - question->since_ns;
	if (question->owner.tgid) {
		put_owner(&answer->head, &question->owner);
		answer->unwanted = has_targets() && !question->owner.wanted;
	}
	bpf_map_delete_elem(&questions, &key);
}

static __always_inline void send_answer(unsigned char *message, u32 size, struct udp_start *udp,
					u32 netns)
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
	answer->took_ns = 0;
	answer->unwanted = has_targets();
	answer->size = size;
	answer->netns = netns;
	put_question(answer, udp);
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
	struct udp_start udp = {};

	if (!start || bpf_probe_read_kernel(&udp, sizeof(udp), data + start))
		return 0;
	if (port_of(udp.source) != DNS_PORT)
		return 0;
	linear = BPF_CORE_READ(skb, len) - BPF_CORE_READ(skb, data_len);
	if (linear > start + UDP_HEADER)
		send_answer(data + start + UDP_HEADER, linear - start - UDP_HEADER, &udp,
			    netns_of(skb));
	return 0;
}

#endif
