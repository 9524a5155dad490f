// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Sends an event of a connection, if it is wanted.
#ifndef TCP_EMIT_H
#define TCP_EMIT_H

#include "records.h"
#include "socket.h"

CONFIG u32 wanted_kinds = ~0U; // 1 << enum tcp_event_kind
CONFIG u32 wanted_port = 0;    // of either side; 0: all

// By the address of the socket. Both go when it is closed.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, struct connection);
} connections SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, struct owner);
} owners SEC(".maps");

// The current task owns a socket.
static __always_inline void own(struct owner *owner)
{
	bool numbered = own_numbers(bpf_get_current_pid_tgid(), true, &owner->tgid, &owner->tid);

	read_comm(&owner->comm);
	owner->cgroup = bpf_get_current_cgroup_id();
	owner->uid = bpf_get_current_uid_gid();
	owner->wanted = listed(owner->tgid, owner->tid) && in_scope();
	if (owner->wanted && !numbered)
		COUNT(outside_namespace);
}

static __always_inline struct owner *owner_of(u64 socket, struct connection *connection)
{
	if (connection && connection->direction == DIRECTION_OUT)
		return &connection->owner;
	return bpf_map_lookup_elem(&owners, &socket);
}

static __always_inline void put_addresses(struct tcp_event *event, struct sock_common *ends)
{
	event->family = BPF_CORE_READ(ends, skc_family);
	event->remote_port = port_of(BPF_CORE_READ(ends, skc_dport));
	event->local_port = BPF_CORE_READ(ends, skc_num);
	event->netns = BPF_CORE_READ(ends, skc_net.net, ns.inum);
	__builtin_memset(event->local, 0, sizeof(event->local));
	__builtin_memset(event->remote, 0, sizeof(event->remote));
	if (event->family == AF_INET) {
		BPF_CORE_READ_INTO((__be32 *)event->local, ends, skc_rcv_saddr);
		BPF_CORE_READ_INTO((__be32 *)event->remote, ends, skc_daddr);
	} else {
		BPF_CORE_READ_INTO((struct in6_addr *)event->local, ends, skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO((struct in6_addr *)event->remote, ends, skc_v6_daddr);
	}
}

// The kernel counts the peer's FIN as a byte; RFC 4898 does not.
static __always_inline void put_traffic(struct tcp_event *event, struct sock *sk)
{
	struct tcp_sock *tcp = (void *)sk;
	u64 received = BPF_CORE_READ(tcp, bytes_received);

	if (received && BPF_CORE_READ(sk, __sk_common.skc_flags) >> SOCK_DONE & 1)
		received--;
	event->received = received;
	event->sent = BPF_CORE_READ(tcp, bytes_sent) - BPF_CORE_READ(tcp, bytes_retrans);
	event->retransmits = BPF_CORE_READ(tcp, total_retrans);
	event->srtt_us = BPF_CORE_READ(tcp, srtt_us) >> 3;
}

static __always_inline void put_owner(struct event *head, struct owner *owner)
{
	if (!owner)
		return;
	head->cgroup = owner->cgroup;
	head->tgid = owner->tgid;
	head->tid = owner->tid;
	head->uid = owner->uid;
	__builtin_memcpy(head->comm, owner->comm, sizeof(head->comm));
}

static __always_inline bool port_wanted(struct tcp_event *event)
{
	return !wanted_port || event->local_port == wanted_port ||
	       event->remote_port == wanted_port;
}

struct change {
	u64 now_ns;
	u64 took_ns;
	u8 kind;
	u8 direction;
	u8 old_state;
	u8 new_state;
};

// `ends` are those of a request that has no socket yet; NULL: of the socket.
static __always_inline void emit(struct sock *sk, struct sock_common *ends, struct owner *owner,
				 struct change *change)
{
	struct tcp_event *event;
	struct inet_sock *inet = (void *)sk;

	if (!(wanted_kinds >> change->kind & 1) || (has_targets() && (!owner || !owner->wanted)))
		return;
	if (!cpu_wanted(bpf_get_smp_processor_id()))
		return;
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		__sync_fetch_and_add(&events_full, 1);
		return;
	}
	__builtin_memset(event, 0, sizeof(*event));
	event->head.time_ns = change->now_ns;
	event->took_ns = change->took_ns;
	event->head.kind = change->kind;
	event->direction = change->direction;
	event->old_state = change->old_state;
	event->new_state = change->new_state;
	event->socket = (u64)sk;
	event->error = BPF_CORE_READ(sk, sk_err);
	put_owner(&event->head, owner);
	if (ends) {
		put_addresses(event, ends);
	} else {
		put_addresses(event, (void *)sk + bpf_core_field_offset(sk->__sk_common));
		if (!event->local_port)
			event->local_port = port_of(BPF_CORE_READ(inet, inet_sport));
		put_traffic(event, sk);
	}
	if (port_wanted(event))
		bpf_ringbuf_submit(event, 0);
	else
		bpf_ringbuf_discard(event, 0);
}

#endif
