// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// One set of counters of each CPU for many sessions: at each switch, what they counted since the last
// one is added to the sums of the CPU, and to those of the task that leaves it, if a session follows it.
//
// It runs with interrupts off at a switch. A session that reads runs it on each CPU first, as a test
// run, one session at a time: purebpf/observe/instruments/shared_counts.py.
#include "purebpf.h"

#define MOST_EVENTS 32

CONFIG u32 events = 0;	  // at most MOST_EVENTS
CONFIG u32 cpu_limit = 1; // possible CPUs: event N of CPU C is at N * cpu_limit + C

bool phase = false; // on: before, the first readings are taken

struct reading { // struct bpf_perf_event_value
	u64 counter;
	u64 enabled;
	u64 running;
};

struct readings {
	struct reading of[MOST_EVENTS];
};

enum task_kind {
	OF_PROCESS = 0,
	OF_THREAD = 1
};

struct task_key {
	u32 kind;
	u32 id; // in the first PID namespace
};

// Events stay in it when who made them is gone: Linux 5.10, commit 792caccc4526, "bpf: Introduce
// BPF_F_PRESERVE_ELEMS for perf event array".
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(map_flags, BPF_F_PRESERVE_ELEMS);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct readings);
} last SEC(".maps"), sums SEC(".maps");

// Sessions add the tasks that they follow.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, struct task_key);
	__type(value, struct readings);
} tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} unread SEC(".maps"); // readings that the kernel refused

static __always_inline struct readings *followed(u32 kind, u32 id)
{
	struct task_key key = {.kind = kind, .id = id};

	return bpf_map_lookup_elem(&tasks, &key);
}

static __always_inline void add(struct reading *sum, struct reading *now, struct reading *before)
{
	sum->counter += now->counter - before->counter;
	sum->enabled += now->enabled - before->enabled;
	sum->running += now->running - before->running;
}

SEC("raw_tp/sched_switch")
int add_counts(void *ctx)
{
	struct readings *before, *sum, *process, *thread;
	u64 task = bpf_get_current_pid_tgid(), *failed;
	u32 zero = 0, cpu = bpf_get_smp_processor_id();

	before = bpf_map_lookup_elem(&last, &zero);
	sum = bpf_map_lookup_elem(&sums, &zero);
	failed = bpf_map_lookup_elem(&unread, &zero);
	if (!before || !sum || !failed)
		return 0; // not so
	process = followed(OF_PROCESS, task >> 32);
	thread = followed(OF_THREAD, task);
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < MOST_EVENTS; i++) {
		struct reading now = {};
		u64 event = i;

		OPAQUE(event); // else clang adds to pointers before they are compared with NULL
		if (event >= events || event >= MOST_EVENTS)
			break;
		if (bpf_perf_event_read_value(&counters, event * cpu_limit + cpu, (void *)&now,
					      sizeof(now))) {
			++*failed;
			continue;
		}
		if (phase) {
			add(&sum->of[event], &now, &before->of[event]);
			if (process)
				add(&process->of[event], &now, &before->of[event]);
			if (thread)
				add(&thread->of[event], &now, &before->of[event]);
		}
		before->of[event] = now;
	}
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
