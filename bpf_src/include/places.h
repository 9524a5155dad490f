// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Places for programs that may be preempted by themselves on one CPU: define PLACES before.
//
// Programs at uprobes and, since Linux 6.13, at the start and end of system calls can be preempted,
// but do not move to another CPU (commit 8c7dcb84e3b7, "bpf: implement sleepable uprobes by chaining
// gps"): what runs next on the CPU must not write to the same place.
#ifndef PLACES_H
#define PLACES_H

#include "purebpf.h"

// Which places of this CPU are in use: a bit each.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} places SEC(".maps");

// A place to walk a stack in; PLACES: none is left.
static __always_inline u32 take_place(void)
{
	u32 zero = 0;
	u64 *taken = bpf_map_lookup_elem(&places, &zero);

	if (!taken)
		return PLACES;
#pragma clang loop unroll(full)
	for (u32 place = 0; place < PLACES; place++) {
		u64 bit = 1ULL << place;

		if (!(__sync_fetch_and_or(taken, bit) & bit))
			return place;
	}
	return PLACES;
}

static __always_inline void give_back(u32 place)
{
	u32 zero = 0;
	u64 *taken = bpf_map_lookup_elem(&places, &zero);

	if (taken && place < PLACES)
		__sync_fetch_and_and(taken, ~(1ULL << place));
}

#endif
