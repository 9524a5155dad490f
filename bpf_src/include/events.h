// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What programs that send a record for each event have in common: whose events, how a record
// begins, and the ring that it goes through.
#ifndef EVENTS_H
#define EVENTS_H

#include "comm.h"
#include "cpus.h"
#include "pid_namespace.h"
#include "targets.h"

CONFIG u32 own_tgid = 0; // who is asking: left out

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 23);
} events SEC(".maps");

u64 events_full = 0; // records that found no room in the ring; rarely written, so atomically

// How every record begins. What follows depends on `kind`, of which each object has its own.
struct event {
	u64 time_ns; // of CLOCK_MONOTONIC
	u64 cgroup;  // the number of the cgroup v2 of the task
	u32 kind;
	u32 tgid; // in the pid namespace of who asks
	u32 tid;
	u32 uid;
	char comm[TASK_COMM_LEN];
};

// Whether events of the current task are asked for; numbers it.
static __always_inline bool own_task_wanted(u32 *tgid, u32 *tid)
{
	own_numbers(bpf_get_current_pid_tgid(), true, tgid, tid);
	if (own_tgid && *tgid == own_tgid)
		return false;
	if (!listed(*tgid, *tid) || !cpu_wanted(bpf_get_smp_processor_id()))
		return false;
	return in_scope();
}

// Begins a record of the current task; what it says of time is now.
static __always_inline void begin_event(struct event *event, u32 kind, u32 tgid, u32 tid)
{
	event->time_ns = bpf_ktime_get_ns();
	event->cgroup = bpf_get_current_cgroup_id();
	event->kind = kind;
	event->tgid = tgid;
	event->tid = tid;
	event->uid = bpf_get_current_uid_gid();
	read_comm(&event->comm);
}

static __always_inline void send_event(void *record, u64 size)
{
	if (bpf_ringbuf_output(&events, record, size, 0))
		__sync_fetch_and_add(&events_full, 1);
}

#endif
