// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// A `struct task_state`, which the program declares before, for each task: in the task's storage,
// or in a hash on kernels without it (before Linux 5.11, commit 4cf1bc1f1045). The hash is by the
// address of the task: that survives execve, which may change the thread's number.
#ifndef TASK_STATE_H
#define TASK_STATE_H

#include "task.h"

#ifndef SPARE_STATES
#define SPARE_STATES 1 // in the hash, beside the storage
#endif

CONFIG bool task_storage = true; // else `tasks_by_address` alone

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_state);
} tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SPARE_STATES);
	__type(key, u64);
	__type(value, struct task_state);
} tasks_by_address SEC(".maps");

static const struct task_state no_state;

static __noinline struct task_state *state_by_address(u64 address, bool create)
{
	struct task_state *state = bpf_map_lookup_elem(&tasks_by_address, &address);

	if (state || !create)
		return state;
	bpf_map_update_elem(&tasks_by_address, &address, &no_state, BPF_NOEXIST);
	return bpf_map_lookup_elem(&tasks_by_address, &address);
}

static __always_inline struct task_state *stored_state(struct task_struct *task, bool create)
{
	return bpf_task_storage_get(&tasks, task, NULL,
				    create ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
}

// NULL: there is none, or no memory for one to be made.
static __always_inline struct task_state *state_of(struct task_struct *task, bool create)
{
	if (task_storage)
		return stored_state(task, create);
	return state_by_address((u64)task, create);
}

// What is in the hash does not go with the task.
static __always_inline void forget_by_address(u64 address)
{
	bpf_map_delete_elem(&tasks_by_address, &address);
}

// The current task, with a type where there is task storage (which wants one, and has the helper).
static __always_inline struct task_struct *own_task(void)
{
	return task_storage ? bpf_get_current_task_btf() : (void *)bpf_get_current_task();
}

#endif
