// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What events count while a BPF program runs: read at its start and at its end, by fentry and fexit.
#include "purebpf.h"

#define MOST_EVENTS 64

CONFIG u32 events = 0;	  // at most MOST_EVENTS
CONFIG u32 cpu_limit = 1; // possible CPUs: event N of CPU C is at N * cpu_limit + C

bool phase = false; // on

struct reading { // struct bpf_perf_event_value
	u64 counter;
	u64 enabled;
	u64 running;
};

// Of a CPU. Programs do not move to another one, but may be preempted by another run of the same
// program, which is counted and not measured.
struct run {
	u64 task;  // that is in the program, 0: none
	u64 depth; // of its runs inside that one
	u64 runs;
	u64 missed;
	u64 unread; // readings that the kernel refused
};

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MOST_EVENTS);
	__type(key, u32);
	__type(value, struct reading);
} starts SEC(".maps"), sums SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct run);
} here SEC(".maps");

static __always_inline long read_event(u32 event, struct reading *to)
{
	u64 index = event * cpu_limit + bpf_get_smp_processor_id();

	return bpf_perf_event_read_value(&counters, index, (void *)to, sizeof(*to));
}

static __always_inline struct run *run_here(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&here, &zero);
}

SEC("?fentry")
int program_begins(u64 *ctx)
{
	struct run *run = run_here();
	u64 task = bpf_get_current_task();

	if (!phase || !run)
		return 0;
	if (run->task) {
		run->missed++;
		if (run->task == task)
			run->depth++;
		return 0;
	}
	run->task = task;
#pragma clang loop unroll(disable)
	for (u32 event = 0; event < MOST_EVENTS; event++) {
		struct reading *start;
		u32 key = event;

		if (event >= events)
			break;
		start = bpf_map_lookup_elem(&starts, &key);
		if (start && read_event(event, start))
			start->running = ~0ULL;
	}
	return 0;
}

SEC("?fexit")
int program_ends(u64 *ctx)
{
	struct run *run = run_here();

	if (!run || run->task != bpf_get_current_task())
		return 0; // it began before this was attached
	if (run->depth) {
		run->depth--;
		return 0;
	}
#pragma clang loop unroll(disable)
	for (u32 event = 0; event < MOST_EVENTS; event++) {
		struct reading *start, *sum, now = {};
		u32 key = event;

		if (event >= events)
			break;
		start = bpf_map_lookup_elem(&starts, &key);
		sum = bpf_map_lookup_elem(&sums, &key);
		if (!start || !sum)
			break;
		if (read_event(event, &now) || start->running == ~0ULL) {
			run->unread++;
			continue;
		}
		sum->counter += now.counter - start->counter;
		sum->enabled += now.enabled - start->enabled;
		sum->running += now.running - start->running;
	}
	run->runs++;
	run->task = 0;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
