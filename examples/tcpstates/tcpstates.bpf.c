// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// A record for each change of state of a TCP socket, with the time that it was in the old one.
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define AF_INET 2
#define IPPROTO_TCP 6
#define TCP_CLOSE 7

struct in6_addr {
	__u8 bytes[16];
};

struct sock_common {
	__u16 skc_family;
	__be16 skc_dport;
	__be32 skc_daddr, skc_rcv_saddr;
	struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr;
} __attribute__((preserve_access_index));

struct sock {
	struct sock_common __sk_common;
	__u16 sk_protocol;
} __attribute__((preserve_access_index));

struct inet_sock {
	__be16 inet_sport; // skc_num is zero already when a socket is closed
} __attribute__((preserve_access_index));

struct change {
	__u64 socket; // its address: the same in all records of one connection
	__u64 duration_ns; // in the old state; 0: it began before we looked
	__u32 pid; // of the task that was running: an interrupt may have hit any
	__u16 family, local_port, remote_port;
	__u8 old_state, new_state;
	__u8 local[16], remote[16];
	char comm[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64); // socket
	__type(value, __u64); // when it came into its state
} since SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
	__type(value, struct change);
} events SEC(".maps");

volatile __u64 lost = 0;

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(on_change, struct sock *sk, int old_state, int new_state)
{
	__u64 now = bpf_ktime_get_ns(), socket = (__u64)sk, *then;
	struct change *event;

	if (sk->sk_protocol != IPPROTO_TCP)
		return 0;
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	then = bpf_map_lookup_elem(&since, &socket);
	if (event) {
		event->socket = socket;
		event->duration_ns = then ? now - *then : 0;
		event->pid = bpf_get_current_pid_tgid() >> 32;
		event->family = sk->__sk_common.skc_family;
		event->local_port = bpf_ntohs(BPF_CORE_READ((struct inet_sock *)sk, inet_sport));
		event->remote_port = bpf_ntohs(sk->__sk_common.skc_dport);
		event->old_state = old_state;
		event->new_state = new_state;
		__builtin_memset(event->local, 0, sizeof(event->local));
		__builtin_memset(event->remote, 0, sizeof(event->remote));
		if (event->family == AF_INET) {
			*(__u32 *)event->local = sk->__sk_common.skc_rcv_saddr;
			*(__u32 *)event->remote = sk->__sk_common.skc_daddr;
		} else {
			bpf_probe_read_kernel(event->local, 16, &sk->__sk_common.skc_v6_rcv_saddr);
			bpf_probe_read_kernel(event->remote, 16, &sk->__sk_common.skc_v6_daddr);
		}
		bpf_get_current_comm(event->comm, sizeof(event->comm));
		bpf_ringbuf_submit(event, 0);
	} else {
		__sync_fetch_and_add(&lost, 1);
	}
	if (new_state == TCP_CLOSE)
		bpf_map_delete_elem(&since, &socket);
	else if (bpf_map_update_elem(&since, &socket, &now, BPF_ANY))
		__sync_fetch_and_add(&lost, 1);
	return 0;
}
