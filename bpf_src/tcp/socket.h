// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The parts of the kernel's TCP sockets that are used here, found at load time by their names.
#ifndef TCP_SOCKET_H
#define TCP_SOCKET_H

#include "descriptors.h"

#define AF_INET 2
#define AF_INET6 10
#define IPPROTO_TCP 6
#define SOCK_DONE 1 // include/net/sock.h: the peer's FIN came

enum tcp_state { // include/net/tcp_states.h
	STATE_ESTABLISHED = 1,
	STATE_SYN_SENT = 2,
	STATE_SYN_RECV = 3,
	STATE_CLOSE = 7,
	STATE_LISTEN = 10,
};

struct in6_addr {
	u8 bytes[16];
};

struct net {
	struct ns_common ns;
} __attribute__((preserve_access_index));

typedef struct {
	struct net *net;
} possible_net_t;

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	u16 skc_num;
	u16 skc_family;
	unsigned char skc_state;
	unsigned long skc_flags;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
} __attribute__((preserve_access_index));

struct sock {
	struct sock_common __sk_common;
	u16 sk_protocol;
	int sk_err;
} __attribute__((preserve_access_index));

struct request_sock {
	struct sock_common __req_common;
} __attribute__((preserve_access_index));

struct inet_sock {
	__be16 inet_sport; // skc_num is zero already when a socket is closed
} __attribute__((preserve_access_index));

struct tcp_sock {
	u64 bytes_received;
	u64 bytes_sent;
	u64 bytes_retrans;
	u32 total_retrans;
	u32 srtt_us; // of eighths
} __attribute__((preserve_access_index));

struct socket {
	struct sock *sk;
} __attribute__((preserve_access_index));

struct file {
	void *private_data;
} __attribute__((preserve_access_index));

static __always_inline u16 port_of(__be16 port)
{
	return __builtin_bswap16(port);
}

static __always_inline bool is_tcp(struct sock *sk)
{
	u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);

	return (family == AF_INET || family == AF_INET6) &&
	       BPF_CORE_READ(sk, sk_protocol) == IPPROTO_TCP;
}

// The socket behind a number that accept(2) returned to the current task; NULL: another thread has
// closed it by now.
static __always_inline struct sock *socket_at(u32 fd)
{
	struct file *file = file_at(fd);
	struct socket *socket;

	if (!file)
		return NULL;
	socket = BPF_CORE_READ(file, private_data);
	return BPF_CORE_READ(socket, sk);
}

#endif
