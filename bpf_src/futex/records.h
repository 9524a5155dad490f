// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What is kept of waits in futex(2).
#ifndef FUTEX_RECORDS_H
#define FUTEX_RECORDS_H

#include "histogram.h"

// arch/x86/entry/syscalls/syscall_64.tbl
#define CALL_FUTEX 202
#define CALL_FUTEX_WAKE 454
#define CALL_FUTEX_WAIT 455

// include/uapi/linux/futex.h
#define FUTEX_WAIT 0
#define FUTEX_WAKE 1
#define FUTEX_REQUEUE 3
#define FUTEX_CMP_REQUEUE 4
#define FUTEX_WAKE_OP 5
#define FUTEX_LOCK_PI 6
#define FUTEX_UNLOCK_PI 7
#define FUTEX_WAIT_BITSET 9
#define FUTEX_WAKE_BITSET 10
#define FUTEX_WAIT_REQUEUE_PI 11
#define FUTEX_LOCK_PI2 13
#define FUTEX_COMMANDS 0x7f // without FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME
#define FUTEX_TID_MASK 0x3fffffff
#define MOST_TIDS (1 << 22) // include/linux/threads.h: PID_MAX_LIMIT

#define EAGAIN 11
#define ETIMEDOUT 110

enum request {
	REQUEST_OTHER = 0,
	REQUEST_WAIT = 1,
	REQUEST_LOCK_PI = 2,
	REQUEST_WAKE = 3,
};

struct row_key {
	u64 stack; // of user space
	u64 address;
	u64 cgroup; // with_cgroups
	u32 tgid;   // in our pid namespace
	u32 tid;    // by_thread
	u32 owner;  // by_owner; 0: not known
	u32 pad;
};

struct wait {
	u64 since_ns;
	struct row_key key;
	u32 position; // among those that wait for the lock, from 1 on; 0: `locks` had no place
	u32 pad;
	char comm[TASK_COMM_LEN];
};

// A wait that took `slower_ns` or more.
struct slow_wait {
	u64 time_ns; // of its end
	u64 took_ns;
	struct row_key key; // with the thread and the owner
	u64 waker_stack;
	u64 wake_ns; // since the waker's call; 0: it was not seen
	char comm[TASK_COMM_LEN];
};

// Written by every CPU.
struct row {
	u64 waits;
	u64 total_ns;
	u64 max_ns;
	u64 timeouts; // of the waits, those that ended by the clock
	u64 woken;    // of the waits, those of which the waker was seen
	u64 wake_ns;  // of those: from the waker's call to the end of the wait
	u64 waker_stack;
	u64 handed_on; // waits that ended with the lock while others still waited for it
	u32 most_waiting;
	u32 pad;
	char comm[TASK_COMM_LEN];
	u64 buckets[BUCKETS]; // of nanoseconds
};

struct lock_key {
	u64 address;
	u64 process; // tgid in the initial namespace
};

struct lock {
	u64 woken_ns; // the last call that woke
	u64 waker_stack;
	u32 waiting; // threads
	u32 pad;
};

// One event per line. Programs may be preempted, so that every field is added to atomically.
struct stats {
	u64 waits;
	u64 retries;	       // calls that did not wait: the word had changed
	u64 waits_full;	       // `waits` had no place
	u64 rows_full;	       // `rows` had no place
	u64 rows_busy;	       // it was locked by what the program interrupted
	u64 locks_full;	       // `locks` had no place: the waker is missing
	u64 places_taken;      // more programs than PLACES were preempted: the stack is missing
	u64 outside_namespace; // tasks without a number in our pid namespace
	u64 events_full;       // slow waits that found no room in the ring
};

CONFIG u32 own_tgid = 0; // who is asking: left out
CONFIG bool by_thread = false;
CONFIG bool by_owner = false;
CONFIG bool with_cgroups = false;
CONFIG bool with_wakers = false;
CONFIG u64 slower_ns = ~0ULL; // waits that took so long are sent one by one

struct slow_wait *anchor_slow_wait; // keeps the type in BTF

bool phase = false; // on

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC); // a row has 1.6 kB
	__type(key, struct row_key);
	__type(value, struct row);
} rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, u64); // bpf_get_current_pid_tgid()
	__type(value, struct wait);
} waits SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct lock_key);
	__type(value, struct lock);
} locks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} slow_waits SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stats);
} stats SEC(".maps");

#endif
