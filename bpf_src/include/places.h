// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Places for programs that may be preempted by themselves on one CPU: define PLACES before.
//
// Programs at uprobes and, since Linux 6.13, at the start and end of system calls can be preempted,
// but do not move to another CPU (commit 8c7dcb84e3b7, "bpf: implement sleepable uprobes by chaining
// gps"): what runs next on the CPU must not write to the same place.
#ifndef PLACES_H
#define PLACES_H

#include "purebpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PLACES);
	__type(key, u32);
	__type(value, u64); // programs that are there
} places SEC(".maps");

// A place to walk a stack in; PLACES: none is left. Without BPF_FETCH, which Linux 5.12 brought: who
// adds the first one and reads it has the place, and two who add at once go on.
static __noinline u32 take_place(void)
{
#pragma clang loop unroll(full)
	for (u32 place = 0; place < PLACES; place++) {
		u32 key = place;
		u64 *users = bpf_map_lookup_elem(&places, &key);

		if (!users)
			break;
		__sync_fetch_and_add(users, 1);
		if (*(volatile u64 *)users == 1)
			return place;
		__sync_fetch_and_add(users, -1);
	}
	return PLACES;
}

static __always_inline void give_back(u32 place)
{
	u64 *users = bpf_map_lookup_elem(&places, &place);

	if (users)
		__sync_fetch_and_add(users, -1);
}

#endif
