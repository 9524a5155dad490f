// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Calls by what became of them.
#ifndef LATENCY_STATS_H
#define LATENCY_STATS_H

#include "purebpf.h"

// Programs at probes may be preempted: every field is added to atomically.
struct stats {
	u64 begun;	    // calls
	u64 ended;	    // of those, that returned
	u64 counted;	    // of those, that were only counted
	u64 returns_missed; // of those, over without a return that was seen
	u64 returns_late;   // of these, that returned after all
	u64 unfinished;	    // of those, in which the thread exited, or executed a program
	u64 too_deep;	    // calls inside of DEPTH others: not timed
	u64 states_full;    // calls of tasks that found no place
	u64 rows_full;	    // calls that found no row
	u64 nodes_full;	    // calls that found no place in the tree
	u64 places_taken;   // slow calls without stacks: more programs than PLACES were preempted
	u64 outside_namespace; // calls of tasks without a number in our pid namespace
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stats);
} stats SEC(".maps");

#define COUNT(st, field) __sync_fetch_and_add(&(st)->field, 1)

static __always_inline struct stats *stats_here(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&stats, &zero);
}

#endif
