// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Keeps `tgids` of targets.h complete: a tree of processes, the child of one in it enters before it
// runs its first instruction; or the processes of a name, for as long as they have it. The map is
// that of another object, which user space gives. A thread leaves `tids` when another task gets its
// number, and has the number of its process from an execve of its own on.
//
// An event that is inherited (perf_event_attr.inherit) cannot do that for a clock: each child gets
// an event of its own with a whole period to go, so that those that end sooner are never sampled.
#include "called.h"
#include "pid_namespace.h"

struct tree_stats {
	u64 entered; // processes
	u64 missed;  // `tgids` had no place, or was locked by what this interrupted
};

CONFIG u32 command_tgid = 0;	 // enters when its execve succeeds
CONFIG u32 own_tgid = 0;	 // who is asking: has no name
CONFIG bool has_children = true; // the children of the processes enter, too
CONFIG bool has_tids = false;	 // `tids` has threads

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
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct tree_stats);
} tree_stats SEC(".maps");

static __always_inline void enter(u32 tgid)
{
	struct tree_stats *st;
	u32 zero = 0;
	u8 one = 1;
	long err = bpf_map_update_elem(&tgids, &tgid, &one, BPF_ANY);

	st = bpf_map_lookup_elem(&tree_stats, &zero);
	if (st)
		__sync_fetch_and_add(err ? &st->missed : &st->entered, 1);
}

SEC("tp_btf/task_newtask")
int on_newtask(u64 *ctx)
{
	struct task_struct *child = (void *)ctx[0];
	u32 tgid, tid, child_tgid, child_tid;

	own_numbers(bpf_get_current_pid_tgid(), true, &tgid, &tid);
	if (pid_namespace_ino) {
		numbers_of(child, &child_tgid, &child_tid);
	} else {
		child_tgid = BPF_CORE_READ(child, tgid);
		child_tid = BPF_CORE_READ(child, pid);
	}
	if (has_tids && child_tid)
		bpf_map_delete_elem(&tids, &child_tid);
	if (!tgid || !child_tgid || child_tgid == tgid) // a thread is in its process already
		return 0;
	if ((has_children && bpf_map_lookup_elem(&tgids, &tgid)) || is_wanted_name(child->comm))
		enter(child_tgid);
	else // the number may be that of one that has ended
		bpf_map_delete_elem(&tgids, &child_tgid);
	return 0;
}

// Before a task gets another name: by execve, from its own prctl(PR_SET_NAME), or from another
// thread of its process.
SEC("?tp_btf/task_rename")
int on_rename(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	u32 tgid = BPF_CORE_READ(task, tgid), tid;

	if (tgid != BPF_CORE_READ(task, pid))
		return 0;
	if (pid_namespace_ino)
		numbers_of(task, &tgid, &tid);
	if (!tgid || tgid == own_tgid)
		return 0;
	if (is_wanted_name((void *)ctx[1]))
		enter(tgid);
	else if (!has_children)
		bpf_map_delete_elem(&tgids, &tgid);
	return 0;
}

// The number in our namespace of threads in `tids`, by that in the initial one, which is all that is
// known of a thread's number before an execve.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} numbers SEC(".maps");

SEC("?iter/task")
int number_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	u32 tgid, tid, initial;

	if (!task || !numbers_of(task, &tgid, &tid) || !bpf_map_lookup_elem(&tids, &tid))
		return 0;
	initial = BPF_CORE_READ(task, pid);
	bpf_map_update_elem(&numbers, &initial, &tid, BPF_ANY);
	return 0;
}

// The number in our namespace that the current task had before its execve; 0: not one of `tids`.
static __always_inline u32 number_before(u32 initial, u32 now)
{
	u32 initial_now = bpf_get_current_pid_tgid(), before;
	u32 *number = bpf_map_lookup_elem(&numbers, &initial);

	if (!number)
		return 0;
	before = *number;
	if (initial != initial_now && !bpf_map_delete_elem(&numbers, &initial))
		bpf_map_update_elem(&numbers, &initial_now, &now, BPF_ANY);
	return before;
}

// A thread that is not the first one takes the number of the first one, which execve has ended, as
// it has all others.
static __always_inline void rename_thread(u32 before, u32 now)
{
	u8 one = 1;

	if (before != now && !bpf_map_delete_elem(&tids, &before))
		bpf_map_update_elem(&tids, &now, &one, BPF_ANY);
}

SEC("tp_btf/sched_process_exec")
int on_exec(u64 *ctx)
{
	u32 tgid, tid;

	own_numbers(bpf_get_current_pid_tgid(), true, &tgid, &tid);
	if (has_tids)
		rename_thread(pid_namespace_ino ? number_before(ctx[1], tid) : ctx[1], tid);
	if (command_tgid && tgid == command_tgid)
		enter(tgid);
	return 0;
}

// The last that is heard of a process: not its exit, after which it still gives back its memory.
// It has no numbers any more but those in the initial namespace.
SEC("tp_btf/sched_process_free")
int on_free(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	u32 tgid = BPF_CORE_READ(task, tgid);

	if (!pid_namespace_ino && tgid == BPF_CORE_READ(task, pid))
		bpf_map_delete_elem(&tgids, &tgid);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
