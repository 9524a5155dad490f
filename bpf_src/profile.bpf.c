// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// CPU profiler: counts (task, user stack, kernel stack) at every overflow of a perf event.
//
// Stacks are identified by their whole content: see stacks.h.
#include "counter.h"
#include "pid_namespace.h"
#include "stacks.h"
#include "targets.h"
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_core_read.h>

struct count_key {
	u64 user_stack;
	u64 kernel_stack;
	u32 tgid;
	u32 tid; // 0 unless by_thread
	char comm[TASK_COMM_LEN];
};

// One event per line; what is lost is counted in samples. What stacks lose is in `stack_stats`.
struct stats {
	u64 seen;		 // the program ran
	u64 idle;		 // the idle task, and not asked for
	u64 filtered;		 // outside the target
	u64 counted;		 // in `counts`
	u64 counts_full;	 // `counts` had no place
	u64 counts_busy;	 // `counts` was locked by what the sample interrupted
	u64 outside_namespace;	 // counted with tgid 0: the task has no pid in our pid namespace
	u64 run_time_ns;	 // spent in the program
};

CONFIG bool include_idle = false;
CONFIG bool by_thread = false;
CONFIG bool has_cgroup_ids = false; // only directly in a cgroup of `cgroup_ids`

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 40960);
	__type(key, struct count_key);
	__type(value, u64);
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stats);
} stats SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u64);
	__type(value, u64);
} cgroup_ids SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u64);
	__type(value, u32);
} mount_namespaces SEC(".maps");

// The parts of the kernel's structs that are used here, found at load time by their names.
struct ns_common {
	unsigned int inum;
} __attribute__((preserve_access_index));

struct mnt_namespace {
	struct ns_common ns;
} __attribute__((preserve_access_index));

struct nsproxy {
	struct mnt_namespace *mnt_ns;
} __attribute__((preserve_access_index));

struct task_struct {
	struct nsproxy *nsproxy;
} __attribute__((preserve_access_index));

static __always_inline bool wanted(struct count_key *key)
{
	if (!listed(key->tgid, key->tid) || !in_cgroup())
		return false;
	if (has_cgroup_ids) {
		u64 id = bpf_get_current_cgroup_id();

		if (!bpf_map_lookup_elem(&cgroup_ids, &id))
			return false;
	}
	return true;
}

static __always_inline void record(struct bpf_perf_event_data *ctx, bool in_target,
				   struct stats *st)
{
	struct count_key key = {};
	u64 both = bpf_get_current_pid_tgid();

	st->seen++;
	if (!include_idle && !(u32)both) {
		st->idle++;
		return;
	}
	if (!own_numbers(both, &key.tgid, &key.tid))
		st->outside_namespace++;
	if (!in_target || !wanted(&key)) {
		st->filtered++;
		return;
	}
	if (!by_thread)
		key.tid = 0;
	bpf_get_current_comm(&key.comm, sizeof(key.comm));
	walk_both(ctx, 0, &key.user_stack, &key.kernel_stack);
	count(&counts, &key, &st->counted, &st->counts_full, &st->counts_busy);
}

// Takes its own time: BPF_ENABLE_STATS would slow down every BPF program of the machine for it.
static __always_inline void sample(struct bpf_perf_event_data *ctx, bool in_target)
{
	u32 zero = 0;
	u64 start = bpf_ktime_get_ns();
	struct stats *st = bpf_map_lookup_elem(&stats, &zero);

	if (!st)
		return;
	record(ctx, in_target, st);
	st->run_time_ns += bpf_ktime_get_ns() - start;
}

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	sample(ctx, true);
	return 0;
}

// The same, for the mount namespaces in `mount_namespaces`. A program of its own because it reads
// kernel structs: only this one needs the kernel's BTF.
SEC("?perf_event")
int on_sample_in_mount_namespace(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	u64 id = BPF_CORE_READ(task, nsproxy, mnt_ns, ns.inum);

	sample(ctx, bpf_map_lookup_elem(&mount_namespaces, &id) != 0);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
