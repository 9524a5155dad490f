// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Counters: in a hash, by any key, which every CPU writes; and of what came of an output.
#ifndef COUNTER_H
#define COUNTER_H

#include "purebpf.h"

// Adds one. An error: of the update, which found no place or -EBUSY.
static __always_inline int count_one(void *counters, const void *key)
{
	u64 *found = bpf_map_lookup_elem(counters, key);

	if (!found) {
		u64 first = 1;
		int err = bpf_map_update_elem(counters, key, &first, BPF_NOEXIST);

		if (!err)
			return 0;
		found = bpf_map_lookup_elem(counters, key); // another CPU was first
		if (!found)
			return err;
	}
	__sync_fetch_and_add(found, 1);
	return 0;
}

// Counts the key, and then what came of it, in a counter of this CPU: it was counted, the map had
// no place, or it was locked by what the program interrupted.
static __always_inline void count(void *counters, const void *key, u64 *counted, u64 *full,
				  u64 *busy)
{
	int err = count_one(counters, key);

	if (!err)
		(*counted)++;
	else if (err == -EBUSY)
		(*busy)++;
	else
		(*full)++;
}

// Counts what came of bpf_perf_event_output: it was sent, the ring of the CPU had no room, the CPU has
// no ring (it came online later), or another error. False: user space does not get it.
static __always_inline bool count_output(long err, u64 *sent, u64 *full, u64 *none, u64 *failed)
{
	if (!err)
		(*sent)++;
	else if (err == -ENOSPC)
		(*full)++;
	else if (err == -ENOENT)
		(*none)++;
	else
		(*failed)++;
	return !err;
}

#endif
