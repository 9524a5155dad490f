// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What is added up: calls by function and group, and by the calls that they were made in.
#ifndef LATENCY_ROWS_H
#define LATENCY_ROWS_H

#include "events.h"
#include "frames.h"
#include "histogram.h"
#include "map_entry.h"
#include "stats.h"

enum grouping {
	BY_NOTHING = 0,
	BY_PROCESS = 1,
	BY_THREAD = 2,
	BY_COMM = 3,
	BY_CPU = 4,
	BY_CGROUP = 5,
	BY_RESULT = 6,
	BY_ARGUMENT = 7,
};

struct row_key {
	u64 group[2];
	u32 function;
	u32 cpu; // that adds: lines of a cache stay where they are
};

struct row {
	u64 calls;
	u64 total_ns;
	u64 least_ns; // two tasks that preempt each other may lose one here; user space knows the bucket
	u64 most_ns;
	char comm[TASK_COMM_LEN]; // of the first call
	u64 buckets[BUCKETS];
};

// By path: functions from the outermost to this one.
struct node {
	u64 parent;
	u32 function;
	u32 pad;
	u64 calls;
	u64 total_ns;
	u64 self_ns;
};

CONFIG u32 grouping = BY_NOTHING;
CONFIG u64 unit_ns = 1000;	// of the buckets
CONFIG u64 linear_units = 0;	// of each bucket; 0: four to each power of two
CONFIG u64 least_ns = 0;	// shorter calls are not counted
CONFIG bool half_words = false; // results and arguments of 32 bits

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct row_key);
	__type(value, struct row);
} rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64); // a path
	__type(value, struct node);
} nodes SEC(".maps");

static const struct row no_row;

static __always_inline u32 linear_bucket(u64 units)
{
	u64 bucket = units / linear_units;

	return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

// The row of the current task's call; `word` is its result or argument. NULL: it had no place.
static __noinline struct row *row_of(u32 function, u64 word)
{
	struct row_key key = {.function = function, .cpu = bpf_get_smp_processor_id()};
	struct row *row;
	u32 tgid, tid;
	bool is_new;

	own_numbers(bpf_get_current_pid_tgid(), true, &tgid, &tid);
	if (grouping == BY_PROCESS)
		key.group[0] = tgid;
	else if (grouping == BY_THREAD)
		key.group[0] = (u64)tgid << 32 | tid;
	else if (grouping == BY_COMM)
		bpf_get_current_comm(key.group, sizeof(key.group));
	else if (grouping == BY_CPU)
		key.group[0] = key.cpu;
	else if (grouping == BY_CGROUP)
		key.group[0] = bpf_get_current_cgroup_id();
	else if (grouping == BY_RESULT || grouping == BY_ARGUMENT)
		key.group[0] = half_words ? (u32)word : word;
	row = find_or_add_entry(&rows, &key, &no_row, &is_new);
	if (row && is_new)
		bpf_get_current_comm(row->comm, sizeof(row->comm));
	return row;
}

static __noinline int add_to_row(u32 function, u64 took_ns, u64 word)
{
	struct row *row = row_of(function, word);
	u64 units = took_ns / unit_ns;
	struct stats *st = stats_here();
	u32 bucket;

	if (!row) {
		if (st)
			COUNT(st, rows_full);
		return 0;
	}
	bucket = linear_units ? linear_bucket(units) : bucket_of(units);
	__sync_fetch_and_add(&row->total_ns, took_ns);
	if (!row->calls || took_ns < row->least_ns)
		row->least_ns = took_ns;
	if (took_ns > row->most_ns)
		row->most_ns = took_ns;
	__sync_fetch_and_add(&row->calls, 1);
	OPAQUE(bucket);
	if (bucket < BUCKETS)
		__sync_fetch_and_add(&row->buckets[bucket], 1);
	return 0;
}

static __always_inline u64 path_below(u64 parent, u32 function)
{
	u64 path = (parent ^ (function + 1)) * 0xff51afd7ed558ccdULL;

	return path ^ path >> 32;
}

static __noinline int add_to_node(struct frame *frame, u64 parent, u64 took_ns)
{
	struct node first = {.parent = parent, .function = frame->function};
	struct node *node = find_or_add(&nodes, &frame->path, &first);
	struct stats *st = stats_here();

	// Another path may have the same hash, of 64 bits.
	if (!node || node->parent != parent || node->function != frame->function) {
		if (st)
			COUNT(st, nodes_full);
		return 0;
	}
	__sync_fetch_and_add(&node->calls, 1);
	__sync_fetch_and_add(&node->total_ns, took_ns);
	if (took_ns > frame->child_ns)
		__sync_fetch_and_add(&node->self_ns, took_ns - frame->child_ns);
	return 0;
}

#endif
