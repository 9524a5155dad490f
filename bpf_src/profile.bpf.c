// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// CPU profiler: counts (task, user stack, kernel stack) at every overflow of a perf event.
//
// Stacks are identified by their whole content: see stacks.h. Samples that user_stacks.h sends to
// user space are counted there, under the same key.
#include "counter.h"
#include "pid_namespace.h"
#include "targets.h"
#include "user_stacks.h"
#include "python_gil.h"
#include <linux/bpf_perf_event.h>

struct count_key {
	u64 user_stack;
	u64 kernel_stack;
	u32 tgid;
	u32 tid; // 0 unless by_thread
	char comm[TASK_COMM_LEN];
	u64 slot; // of slot_ns since the machine started; 0 without
};

// One event per line; what is lost is counted in samples. What stacks lose is in `stack_stats`.
struct stats {
	u64 seen;	       // the program ran
	u64 idle;	       // the idle task, and not asked for
	u64 filtered;	       // outside the target
	u64 without_gil;       // the thread did not hold it, and only those that do were asked for
	u64 counted;	       // in `counts`
	u64 sent;	       // to user space, which counts it
	u64 counts_full;       // `counts` had no place
	u64 counts_busy;       // `counts` was locked by what the sample interrupted
	u64 outside_namespace; // of those, with tgid 0: the task has no pid in our pid namespace
	u64 run_time_ns;       // spent in the program
};

CONFIG u64 slot_ns = 0; // count by time, too, in slots as long as this; 0: only sums
CONFIG bool include_idle = false;
CONFIG bool by_thread = false;
CONFIG bool gil_only = false;
CONFIG bool has_cgroup_ids = false;	  // only directly in a cgroup of `cgroup_ids`
CONFIG bool has_mount_namespaces = false; // only in those of `mount_namespaces`

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

static __always_inline bool wanted(struct count_key *key)
{
	if (!listed(key->tgid, key->tid) || !in_scope())
		return false;
	if (has_cgroup_ids) {
		u64 id = bpf_get_current_cgroup_id();

		if (!bpf_map_lookup_elem(&cgroup_ids, &id))
			return false;
	}
	return true;
}

// Of the current task.
static __always_inline bool in_mount_namespace(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	u64 id;

	if (!has_mount_namespaces)
		return true;
	id = BPF_CORE_READ(task, nsproxy, mnt_ns, ns.inum);
	return bpf_map_lookup_elem(&mount_namespaces, &id);
}

static __always_inline void record(struct bpf_perf_event_data *ctx, bool typed, bool fp,
				   struct stats *st, u64 now)
{
	struct count_key key = {};
	u64 both = bpf_get_current_pid_tgid();
	bool numbered;

	st->seen++;
	if (!include_idle && !(u32)both) {
		st->idle++;
		return;
	}
	numbered = own_numbers(both, typed, &key.tgid, &key.tid);
	if ((typed && !in_mount_namespace()) || !wanted(&key)) {
		st->filtered++;
		return;
	}
	if (!fp && gil_only && !holds_gil(both >> 32, identity_of_process())) {
		st->without_gil++;
		return;
	}
	if (!numbered)
		st->outside_namespace++;
	if (!by_thread)
		key.tid = 0;
	if (slot_ns)
		key.slot = now / slot_ns;
	bpf_get_current_comm(&key.comm, sizeof(key.comm));
	key.kernel_stack = kernel_stack_of(ctx, 0);
	if (fp)
		key.user_stack = user_stacks ? walk_by_frame_pointers(ctx, 0, true, false) :
					       STACK_NONE;
	else
		key.user_stack = user_stack_of_sample(ctx, 0, key.tgid, &key, sizeof(key));
	if (key.user_stack == STACK_SENT) {
		st->sent++;
		return;
	}
	count(&counts, &key, &st->counted, &st->counts_full, &st->counts_busy);
}

// Takes its own time: BPF_ENABLE_STATS would slow down every BPF program of the machine for it.
static __always_inline void sample(struct bpf_perf_event_data *ctx, bool typed, bool fp)
{
	u32 zero = 0;
	u64 start = bpf_ktime_get_ns();
	struct stats *st = bpf_map_lookup_elem(&stats, &zero);

	if (!st)
		return;
	record(ctx, typed, fp, st, start);
	st->run_time_ns += bpf_ktime_get_ns() - start;
}

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	sample(ctx, false, false);
	return 0;
}

// The same, for mount namespaces, and from within a pid namespace. A program of its own because it
// reads kernel structs: only this one needs the kernel's BTF.
SEC("?perf_event")
int on_sample_typed(struct bpf_perf_event_data *ctx)
{
	sample(ctx, true, false);
	return 0;
}

// The same two by frame pointers alone: a third of the code, and of the maps.
SEC("?perf_event")
int on_sample_fp(struct bpf_perf_event_data *ctx)
{
	sample(ctx, false, true);
	return 0;
}

SEC("?perf_event")
int on_sample_typed_fp(struct bpf_perf_event_data *ctx)
{
	sample(ctx, true, true);
	return 0;
}

// Runs before a user's own program (own_program.bpf.c), which sees only samples that are asked for.
// What is kept is counted by on_sample.
static __always_inline int admit(bool typed)
{
	struct count_key key = {};
	u64 both = bpf_get_current_pid_tgid();
	u32 zero = 0;
	struct stats *st = bpf_map_lookup_elem(&stats, &zero);

	if (!st)
		return 0;
	if (!include_idle && !(u32)both) {
		st->seen++;
		st->idle++;
		return 0;
	}
	own_numbers(both, typed, &key.tgid, &key.tid);
	if ((typed && !in_mount_namespace()) || !wanted(&key)) {
		st->seen++;
		st->filtered++;
		return 0;
	}
	return 1;
}

SEC("?perf_event")
int is_wanted(struct bpf_perf_event_data *ctx)
{
	return admit(false);
}

SEC("?perf_event")
int is_wanted_typed(struct bpf_perf_event_data *ctx)
{
	return admit(true);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
