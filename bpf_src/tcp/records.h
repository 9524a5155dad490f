// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What is kept of connections, what is sent about them, and what goes missing.
#ifndef TCP_RECORDS_H
#define TCP_RECORDS_H

#include "events.h"

typedef __u16 u16;

enum tcp_event_kind {
	TCP_CONNECT = 0,    // a connection of ours is made; took_ns: since its SYN
	TCP_ACCEPT = 1,	    // accept(2) returned one; took_ns: how long it was in the backlog
	TCP_CLOSED = 2,	    // took_ns: since it began
	TCP_FAILED = 3,	    // one of ours was not made; took_ns: since its SYN
	TCP_RETRANSMIT = 4, // took_ns: nothing
	TCP_SYNACK = 5,	    // the answer to a SYN is sent again
	TCP_STATE = 6,	    // took_ns: in the old state
	TCP_NAME = 7,	    // a struct dns_answer: what a name server said
};

enum tcp_direction {
	DIRECTION_UNKNOWN = 0, // it began before the run
	DIRECTION_OUT = 1,
	DIRECTION_IN = 2,
};

// Which process a socket belongs to: the one that connected or accepted.
struct owner {
	u64 cgroup;
	u32 tgid; // in the pid namespace of who asks
	u32 tid;
	u32 uid;
	char comm[TASK_COMM_LEN];
	u8 wanted;
	u8 pad[3];
};

// What is known of a connection. Its socket is locked at each change of state, so that there is one
// writer. Times are nanoseconds of CLOCK_MONOTONIC.
struct connection {
	u64 began_ns;
	u64 established_ns;
	u64 in_state_ns;
	struct owner owner; // of DIRECTION_OUT; of others it is in `owners`
	u8 direction;
	u8 pad[7];
};

struct tcp_event {
	struct event head; // the task is the owner; all zero where it is not known
	u64 took_ns;	   // 0: not known
	u64 socket;	   // its address: the same in all records of one connection
	u64 received;	   // bytes of payload, in order
	u64 sent;	   // bytes of payload, those sent again not counted twice
	u32 netns;
	u32 error;	 // an errno: why it was closed or not made
	u32 retransmits; // segments sent again so far
	u32 srtt_us;
	u16 family;
	u16 local_port;
	u16 remote_port;
	u8 direction;
	u8 old_state;
	u8 new_state;
	u8 pad[7];
	u8 local[16];
	u8 remote[16];
};

#define DNS_SIZE 512 // of an answer by UDP without extensions (RFC 1035, 4.2.1)

struct dns_answer {
	struct event head; // the task is who asked; all zero where it is not known
	u64 took_ns;	   // since the question; 0: not known
	u32 size;	   // of the message; beyond DNS_SIZE it is cut
	u32 netns;	   // in which it came: other namespaces have other name servers, and liars
	u32 unwanted;	   // who asked is no target; its names may be
	u32 pad;
	u8 message[DNS_SIZE];
};

// A socket that a process has open when the run begins.
struct open_socket {
	u64 socket;
	u32 tgid;
	u32 tid;
	char comm[TASK_COMM_LEN];
};

// Programs of interrupts and of tasks count here, rarely: atomically.
struct losses {
	u64 connections_full;  // connections that found no place
	u64 owners_full;       // accepted connections whose process found no place
	u64 outside_namespace; // wanted tasks without a pid in our pid namespace
};

struct losses losses = {};

#define COUNT(field) __sync_fetch_and_add(&losses.field, 1)

struct tcp_event *anchor_tcp_event; // keep the types in BTF
struct dns_answer *anchor_dns_answer;
struct open_socket *anchor_open_socket;

#endif
