// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Names of groups of events: the command of who the group is.
#ifndef NAMES_H
#define NAMES_H

#include "purebpf.h"

struct name {
	char comm[TASK_COMM_LEN];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct name);
} names SEC(".maps");

// Keeps the name of the current task, as `flags` of an update say. False: there was no place.
static __always_inline bool keep_name(u64 group, u64 flags)
{
	struct name name = {};
	int err; // before Linux 6.4 the upper half of what an inlined update returns is not set

	bpf_get_current_comm(&name.comm, sizeof(name.comm));
	err = bpf_map_update_elem(&names, &group, &name, flags);
	return !err || err == -EEXIST || err == -ENOENT;
}

#endif
