// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Whose events are asked for: processes, threads, a user's, what is below a cgroup. User space fills
// the maps before the first event.
#ifndef TARGETS_H
#define TARGETS_H

#include "purebpf.h"

CONFIG bool has_tgids = false;	// only the processes in `tgids`
CONFIG bool has_tids = false;	// only the threads in `tids`
CONFIG bool has_cgroup = false; // only below the cgroup in `cgroup`
CONFIG bool has_uid = false;	// only what runs as the user `uid`
CONFIG u32 uid = 0;		// as the initial user namespace numbers it

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u8);
} tgids SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u8);
} tids SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} cgroup SEC(".maps");

static __always_inline bool has_targets(void)
{
	return has_tgids || has_tids || has_cgroup || has_uid;
}

static __always_inline bool listed(u32 tgid, u32 tid)
{
	if (has_tgids && !bpf_map_lookup_elem(&tgids, &tgid))
		return false;
	return !has_tids || bpf_map_lookup_elem(&tids, &tid);
}

// Of the current task.
static __always_inline bool runs_as_user(void)
{
	return !has_uid || (u32)bpf_get_current_uid_gid() == uid;
}

// Of the current task: its user and its cgroup, which may change while it runs.
static __always_inline bool in_scope(void)
{
	if (!runs_as_user())
		return false;
	return !has_cgroup || bpf_current_task_under_cgroup(&cgroup, 0) == 1;
}

#endif
