// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// CPU profiler: counts (task, user stack, kernel stack) at every overflow of a perf event.
//
// Stacks are identified by their whole content: a 64-bit hash picks the slot, and a full compare
// decides. See docs/design/0001-stack-identity.md.
#include "purebpf.h"
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_core_read.h>

#define MAX_DEPTH 127 // frames; the default of kernel.perf_event_max_stack
#define PROBES 8      // slots tried for a stack whose hash is taken by another one

// Stack ids below FIRST_STACK are no keys of `stacks`.
enum stack_id {
	STACK_NONE = 0,		// nothing there: a kernel thread, a sample in user mode, -U, -K
	STACK_UNAVAILABLE = 1,	// the kernel could not walk it
	STACK_LOST = 2,		// the table had no place for it
	FIRST_STACK = 16,
};

#define KERNEL_BIT (1ULL << 63) // set in the ids of kernel stacks, clear in those of user stacks

struct stack {
	u32 depth;
	u32 pad;
	u64 addresses[MAX_DEPTH]; // leaf first; zero behind `depth`
};

#define WORDS (sizeof(struct stack) / sizeof(u64)) // 128: `depth` and `pad` are the first
#define CHUNK 8

struct count_key {
	u64 user_stack;
	u64 kernel_stack;
	u32 tgid;
	u32 tid; // 0 unless by_thread
	char comm[TASK_COMM_LEN];
};

// One event per line; what is lost is counted in samples, except where it says stacks.
struct stats {
	u64 seen;		 // the program ran
	u64 idle;		 // the idle task, and not asked for
	u64 filtered;		 // outside the target
	u64 counted;		 // in `counts`
	u64 counts_full;	 // `counts` had no place
	u64 counts_busy;	 // `counts` was locked by what the sample interrupted
	u64 stacks_full;	 // `stacks` had no place
	u64 stacks_busy;	 // `stacks` was locked by what the sample interrupted
	u64 stacks_crowded;	 // all PROBES slots were taken by other stacks
	u64 stacks_displaced;	 // stacks kept in a later slot than their hash says
	u64 user_truncated;	 // deeper than max_depth
	u64 kernel_truncated;	 //
	u64 user_unavailable;	 // bpf_get_stack failed
	u64 kernel_unavailable;	 //
	u64 outside_namespace;	 // counted with tgid 0: the task has no pid in our pid namespace
	u64 run_time_ns;	 // spent in the program
};

CONFIG bool user_stacks = true;
CONFIG bool kernel_stacks = true;
CONFIG bool include_idle = false;
CONFIG bool by_thread = false;
CONFIG bool has_tgids = false;	// only the processes in `tgids`
CONFIG bool has_tids = false;	// only the threads in `tids`
CONFIG bool has_cgroup = false; // only below the cgroup in `cgroup`
CONFIG bool has_cgroup_ids = false; // only directly in a cgroup of `cgroup_ids`
CONFIG u32 max_depth = MAX_DEPTH;   // min(MAX_DEPTH, kernel.perf_event_max_stack)
CONFIG u64 pid_namespace_dev = 0;   // the namespace to number tasks in; 0: the initial one
CONFIG u64 pid_namespace_ino = 0;
CONFIG u64 hash_mask = ~0ULL; // for tests: bits left of the hash, so that collisions happen

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 40960);
	__type(key, struct count_key);
	__type(value, u64);
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct stack);
} stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stack);
} scratch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stats);
} stats SEC(".maps");

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

// The loops live in global functions of scalars: each is verified once, by itself, and its paths
// do not multiply those of its callers (Linux 5.6, commit 51c39bb1d5d1). They take a struct stack
// as chunks of words, as many as `depth` reaches into: the verifier walks through each turn of a
// loop, and a turn for each frame would triple what it has to look at. Words behind the depth are
// zero (bpf_get_stack clears them), and `depth` itself is in the first one.

// 64-bit hash of the stack in `scratch`: multiply and fold, one round a word.
__noinline u64 hash_scratch(u32 depth)
{
	u32 zero = 0;
	u64 hash = 0x9e3779b97f4a7c15ULL;
	u64 *mine = bpf_map_lookup_elem(&scratch, &zero);

	if (!mine)
		return 0;
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < WORDS; i += CHUNK) {
		u64 *words = mine;

		OPAQUE(i);
		if (i > WORDS - CHUNK || i > depth)
			break;
		words += i;
		OPAQUE(words);
#pragma clang loop unroll(full)
		for (u32 j = 0; j < CHUNK; j++) {
			hash = (hash ^ words[j]) * 0xff51afd7ed558ccdULL;
			hash ^= hash >> 32;
		}
	}
	return hash;
}

// Whether the stack in `scratch` is the one stored under `id`.
__noinline int scratch_equals(u64 id, u32 depth)
{
	u32 zero = 0;
	u64 *mine = bpf_map_lookup_elem(&scratch, &zero);
	u64 *theirs = bpf_map_lookup_elem(&stacks, &id);

	if (!mine || !theirs)
		return 0;
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < WORDS; i += CHUNK) {
		u64 *left = mine, *right = theirs;
		u64 different = 0;

		OPAQUE(i);
		if (i > WORDS - CHUNK || i > depth)
			break;
		left += i;
		right += i;
		OPAQUE(left);
		OPAQUE(right);
#pragma clang loop unroll(full)
		for (u32 j = 0; j < CHUNK; j++)
			different |= left[j] ^ right[j];
		if (different)
			return 0;
	}
	return 1;
}

// Finds or makes the entry of the stack in `scratch`; returns its id, or STACK_LOST.
// Errors are kept in an int: an update that the verifier inlines left the upper half of the
// register clear before Linux 6.4.
// Entries are never removed while the program runs, so a search that starts at the hash and ends
// at the first free slot cannot miss an entry made earlier. Two CPUs that insert the same stack
// at once meet at the same slot: the second gets EEXIST and compares.
__noinline u64 intern_scratch(u64 kind)
{
	u32 zero = 0;
	struct stack *mine = bpf_map_lookup_elem(&scratch, &zero);
	struct stats *st = bpf_map_lookup_elem(&stats, &zero);
	u64 hash;

	if (!mine || !st)
		return STACK_LOST;
	hash = hash_scratch(mine->depth) & hash_mask & ~KERNEL_BIT;
	if (hash < FIRST_STACK)
		hash += FIRST_STACK;
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < PROBES; i++) {
		u64 id = ((hash + i) & ~KERNEL_BIT) | kind;
		int err = 0;

		if (!bpf_map_lookup_elem(&stacks, &id)) {
			err = bpf_map_update_elem(&stacks, &id, mine, BPF_NOEXIST);
			if (!err) {
				if (i)
					st->stacks_displaced++;
				return id;
			}
		}
		if (err && err != -EEXIST) {
			if (err == -EBUSY)
				st->stacks_busy++;
			else
				st->stacks_full++;
			return STACK_LOST;
		}
		if (scratch_equals(id, mine->depth))
			return id;
	}
	st->stacks_crowded++;
	return STACK_LOST;
}

static __always_inline u64 walk(struct bpf_perf_event_data *ctx, u64 kind, struct stats *st)
{
	u32 zero = 0;
	struct stack *mine = bpf_map_lookup_elem(&scratch, &zero);
	long size;

	if (!mine)
		return STACK_LOST;
	size = bpf_get_stack(ctx, mine->addresses, sizeof(mine->addresses),
			     kind ? 0 : BPF_F_USER_STACK);
	if (size < 0) {
		if (kind)
			st->kernel_unavailable++;
		else
			st->user_unavailable++;
		return STACK_UNAVAILABLE;
	}
	mine->depth = size / sizeof(u64);
	if (!mine->depth)
		return STACK_NONE;
	if (mine->depth >= max_depth) {
		if (kind)
			st->kernel_truncated++;
		else
			st->user_truncated++;
	}
	return intern_scratch(kind);
}

static __always_inline void count(struct count_key *key, struct stats *st)
{
	u64 *found = bpf_map_lookup_elem(&counts, key);

	if (!found) {
		u64 first = 1;
		int err = bpf_map_update_elem(&counts, key, &first, BPF_NOEXIST);

		if (!err) {
			st->counted++;
			return;
		}
		found = bpf_map_lookup_elem(&counts, key); // another CPU was first
		if (!found) {
			if (err == -EBUSY)
				st->counts_busy++;
			else
				st->counts_full++;
			return;
		}
	}
	__sync_fetch_and_add(found, 1);
	st->counted++;
}

static __always_inline bool wanted(struct count_key *key)
{
	if (has_tgids && !bpf_map_lookup_elem(&tgids, &key->tgid))
		return false;
	if (has_tids && !bpf_map_lookup_elem(&tids, &key->tid))
		return false;
	if (has_cgroup && bpf_current_task_under_cgroup(&cgroup, 0) != 1)
		return false;
	if (has_cgroup_ids) {
		u64 id = bpf_get_current_cgroup_id();

		if (!bpf_map_lookup_elem(&cgroup_ids, &id))
			return false;
	}
	return true;
}

// Numbers the current task in the namespace that was asked for. A task outside it gets 0.
static __always_inline void identify(struct count_key *key, u64 pid_tgid, struct stats *st)
{
	struct bpf_pidns_info info = {};

	if (!pid_namespace_ino) {
		key->tgid = pid_tgid >> 32;
		key->tid = pid_tgid;
		return;
	}
	if (bpf_get_ns_current_pid_tgid(pid_namespace_dev, pid_namespace_ino, &info, sizeof(info)))
		st->outside_namespace++;
	key->tgid = info.tgid;
	key->tid = info.pid;
}

static __always_inline void record(struct bpf_perf_event_data *ctx, bool in_target,
				   struct stats *st)
{
	struct count_key key = {};
	u64 pid_tgid = bpf_get_current_pid_tgid();

	st->seen++;
	if (!(u32)pid_tgid && !include_idle) {
		st->idle++;
		return;
	}
	identify(&key, pid_tgid, st);
	if (!in_target || !wanted(&key)) {
		st->filtered++;
		return;
	}
	if (!by_thread)
		key.tid = 0;
	bpf_get_current_comm(&key.comm, sizeof(key.comm));
	if (user_stacks)
		key.user_stack = walk(ctx, 0, st);
	if (kernel_stacks)
		key.kernel_stack = walk(ctx, KERNEL_BIT, st);
	count(&key, st);
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
