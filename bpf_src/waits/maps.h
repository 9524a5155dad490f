// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The sums that waits.bpf.c keeps, each by its key.
#ifndef WAITS_MAPS_H
#define WAITS_MAPS_H

#include "purebpf.h"

typedef __s32 s32;
typedef __u16 u16;

#define PATH_SIZE 72

enum endpoint_kind { // of the file that a call waits for
	ENDPOINT_NONE = 0,
	ENDPOINT_FILE = 1,
	ENDPOINT_PIPE = 2,
	ENDPOINT_SOCKET = 3,
};

// The other end of a wait: a file by its inode, a connection by its ends.
struct endpoint {
	u32 kind;
	u32 family;
	u32 inode;
	u16 port; // the peer's
	u16 local_port;
	u32 address[4]; // the peer's, as the network has it
};

struct wait_key {
	u32 tgid;
	u32 tid;
	u32 call;
	s32 fd;
	u64 argument; // the first of the call; 0 where it is an address of a time
	u32 owner;    // the third word of a futex: the owner of a mutex of glibc
	struct endpoint endpoint;
};

struct wait_sum {
	u64 ns;
	u64 count;
	u64 longest_ns;
};

struct waker_key {
	u32 tid;
	u32 call;
	u32 waker_tgid;
	u32 waker_tid;
};

struct call_key {
	u32 tgid;
	u32 call;
	u32 error;
};

struct call_sum {
	u64 count;
	u64 bytes;
	u64 fd;
};

struct path_key {
	u32 tgid;
	u32 call;
	char path[PATH_SIZE];
};

struct connect_key {
	u32 tgid;
	u32 error; // 0: an attempt, however it ended
	struct endpoint endpoint;
};

struct start_key {
	u32 parent;
	u32 is_fork;
	char parent_comm[TASK_COMM_LEN];
	char comm[TASK_COMM_LEN];
};

struct end_key {
	u32 parent;
	u32 code; // as wait(2) has it
	char parent_comm[TASK_COMM_LEN];
	char comm[TASK_COMM_LEN];
};

struct signal_key {
	u32 sender;
	u32 receiver;
	u32 signal;
};

struct wait_stats {
	u64 waits_full;
	u64 wakers_full;
	u64 others_full;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 40000);
	__type(key, struct wait_key);
	__type(value, struct wait_sum);
} waits SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 40000);
	__type(key, struct waker_key);
	__type(value, struct wait_sum);
} wakers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 16000);
	__type(key, struct call_key);
	__type(value, struct call_sum);
} calls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4000);
	__type(key, struct path_key);
	__type(value, u64);
} paths SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8000);
	__type(key, u64);   // a socket that connects
	__type(value, u32); // its process
} connecting SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4000);
	__type(key, struct connect_key);
	__type(value, u64);
} connects SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4000);
	__type(key, struct start_key);
	__type(value, u64);
} starts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2000);
	__type(key, struct end_key);
	__type(value, u64);
} ends SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2000);
	__type(key, struct signal_key);
	__type(value, u64);
} signals SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct wait_stats);
} wait_stats SEC(".maps");

#define COUNT_LOSS(field)                                                             \
	do {                                                                          \
		u32 zero_ = 0;                                                        \
		struct wait_stats *stats_ = bpf_map_lookup_elem(&wait_stats, &zero_); \
		if (stats_)                                                           \
			__sync_fetch_and_add(&stats_->field, 1);                      \
	} while (0)

#define ADD_ONE(map, key, by)                                               \
	do {                                                                \
		u64 first_ = (by), *count_ = bpf_map_lookup_elem(map, key); \
		if (count_)                                                 \
			__sync_fetch_and_add(count_, first_);               \
		else if (bpf_map_update_elem(map, key, &first_, BPF_ANY))   \
			COUNT_LOSS(others_full);                            \
	} while (0)

#endif
