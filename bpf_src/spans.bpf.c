// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// How long spans of scheduling take, as histograms: waits in the run queue, turns on the CPU, or
// times off it.
//
// A span begins and ends in the state of its task, which is written by one CPU at a time: the one
// that holds the lock of the task's run queue. A histogram is written by the one CPU that its key
// names, with interrupts off.
#include "histogram.h"
#include <bpf/bpf_core_read.h>

#define MAX_CPUS 4096 // that -C can name

enum measure {
	RUN_QUEUE = 0, // from a wake-up, or from losing the CPU, until it runs
	ON_CPU = 1,    // from there until it leaves
	OFF_CPU = 2,   // and from there until it runs again
};

enum grouping {
	BY_NOTHING = 0,
	BY_PROCESS = 1,
	BY_THREAD = 2,
	BY_PID_NAMESPACE = 3,
	BY_CGROUP = 4,
};

// What becomes of a task. It is decided when it first leaves a CPU.
enum verdict {
	UNDECIDED = 0,
	ADOPTED = 1, // as UNDECIDED, but wanted for the sake of its parent
	WANTED = 2,
	UNWANTED = 3,
	AWAITED = 4, // the command, until its execve succeeds
};

struct task_state {
	u64 since_ns;	// when its span began, on CLOCK_MONOTONIC; 0: none is open
	u64 pending_ns; // 1 + a span that ended before the task was decided on
	u64 group;
	u8 verdict;
	u8 outside; // of the cgroup that was asked for, when it last left a CPU
	u8 pad[6];
};

struct distribution_key {
	u64 group;
	u32 cpu;
	u32 pad;
};

struct distribution {
	u64 total_ns;
	u64 buckets[BUCKETS]; // of spans in units
};

struct name {
	char comm[TASK_COMM_LEN];
};

// One event per line, each CPU's own.
struct stats {
	u64 begun;	       // spans
	u64 ended;	       // of those, counted or of a task that is not wanted
	u64 given_up;	       // of those, that turned out to be none: woken, and blocked again
	u64 open_at_start;     // spans that began before the run
	u64 switches_missed;   // times another task ran than the one that was switched to
	u64 storage_failed;    // switches of a task that found no place for its state
	u64 rows_full;	       // spans that found no histogram
	u64 names_full;	       // tasks without a place for their name
	u64 clock_backwards;   // counted with 0 ns
	u64 outside_namespace; // tasks without a pid in our pid namespace
};

CONFIG u32 measure = RUN_QUEUE;
CONFIG u32 grouping = BY_NOTHING;
CONFIG u64 unit_ns = 1000;
CONFIG bool include_idle = false;
CONFIG bool task_storage = true;   // else `tasks_by_address`
CONFIG bool has_prev_state = true; // sched_switch passes it (Linux 5.18)
CONFIG bool has_tgids = false;	   // only the processes in `tgids`, and their children from now on
CONFIG bool has_tids = false;	   // only the threads in `tids`
CONFIG bool has_cgroup = false;	   // only below the cgroup in `cgroup`
CONFIG bool has_cpus = false;	   // only spans that end on these
CONFIG u64 cpus[MAX_CPUS / 64] = {};
CONFIG u32 command_tgid = 0;	  // the command to run: from its execve on
CONFIG u64 pid_namespace_dev = 0; // the namespace to number tasks in; 0: the initial one
CONFIG u64 pid_namespace_ino = 0;

bool phase = false; // on

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_state);
} tasks SEC(".maps");

// By the address of the task, where there is no task storage.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct task_state);
} tasks_by_address SEC(".maps");

// Of all tasks together.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct distribution);
} total SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct distribution_key);
	__type(value, struct distribution);
} rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct name);
} names SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stats);
} stats SEC(".maps");

// The task that each CPU was last switched to, by address; 0: none yet.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} running SEC(".maps");

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

// The parts of the kernel's structs that are used here, found at load time by their names.
struct ns_common {
	unsigned int inum;
} __attribute__((preserve_access_index));

struct pid_namespace {
	struct ns_common ns;
} __attribute__((preserve_access_index));

struct upid {
	int nr;
	struct pid_namespace *ns;
} __attribute__((preserve_access_index));

struct pid {
	unsigned int level;
	struct upid numbers[1];
} __attribute__((preserve_access_index));

struct task_struct {
	unsigned int __state;
	int pid;
	struct pid *thread_pid;
} __attribute__((preserve_access_index));

struct task_struct___before_5_14 {
	long state;
} __attribute__((preserve_access_index));

#define TASK_IS_DEAD 0xb0 // EXIT_DEAD, EXIT_ZOMBIE, TASK_DEAD: include/linux/sched.h

static const struct task_state no_state;
static const struct distribution no_distribution;

static __always_inline struct stats *own_stats(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&stats, &zero);
}

static __always_inline struct task_state *state_of(struct task_struct *task, bool create)
{
	struct task_state *state;
	u64 address = (u64)task;

	if (task_storage)
		return bpf_task_storage_get(&tasks, task, NULL,
					    create ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
	state = bpf_map_lookup_elem(&tasks_by_address, &address);
	if (state || !create)
		return state;
	bpf_map_update_elem(&tasks_by_address, &address, &no_state, BPF_NOEXIST);
	return bpf_map_lookup_elem(&tasks_by_address, &address);
}

static __always_inline void begin(struct task_state *state, u64 now_ns, struct stats *st)
{
	if (!state->since_ns)
		st->begun++;
	state->since_ns = now_ns;
}

static __always_inline bool cpu_wanted(u32 cpu)
{
	if (!has_cpus)
		return true;
	return cpu < MAX_CPUS && cpus[cpu / 64] >> (cpu % 64) & 1;
}

static __noinline int add(u64 group, u64 span_ns)
{
	struct distribution_key key = {.group = group, .cpu = bpf_get_smp_processor_id()};
	struct stats *st = own_stats();
	struct distribution *row;
	u32 zero = 0;

	if (!st || !cpu_wanted(key.cpu))
		return 0;
	if (grouping == BY_NOTHING) {
		row = bpf_map_lookup_elem(&total, &zero);
	} else {
		row = bpf_map_lookup_elem(&rows, &key);
		if (!row) {
			bpf_map_update_elem(&rows, &key, &no_distribution, BPF_NOEXIST);
			row = bpf_map_lookup_elem(&rows, &key);
		}
	}
	if (!row) {
		st->rows_full++;
		return 0;
	}
	row->total_ns += span_ns;
	add_to_buckets(row->buckets, span_ns / unit_ns);
	return 0;
}

// Ends the span of a task; it counts once it is known whether the task is wanted.
static __always_inline void end(struct task_state *state, u64 now_ns, struct stats *st)
{
	s64 span_ns = now_ns - state->since_ns;

	state->since_ns = 0;
	st->ended++;
	if (span_ns < 0) {
		st->clock_backwards++;
		span_ns = 0;
	}
	if (state->verdict < WANTED)
		state->pending_ns = span_ns + 1;
	else if (state->verdict == WANTED && !state->outside)
		add(state->group, span_ns);
}

// Numbers the current task in the namespace that was asked for. A task outside it gets 0.
static __always_inline void own_numbers(u32 *tgid, u32 *tid, struct stats *st)
{
	struct bpf_pidns_info info = {};
	u64 both = bpf_get_current_pid_tgid();

	if (!pid_namespace_ino) {
		*tgid = both >> 32;
		*tid = both;
		return;
	}
	if (bpf_get_ns_current_pid_tgid(pid_namespace_dev, pid_namespace_ino, &info, sizeof(info)))
		st->outside_namespace++;
	*tgid = info.tgid;
	*tid = info.pid;
}

static __always_inline u8 judge(u32 tgid, u32 tid)
{
	if (command_tgid)
		return tgid == command_tgid ? AWAITED : UNWANTED;
	if (has_tgids)
		return bpf_map_lookup_elem(&tgids, &tgid) ? WANTED : UNWANTED;
	if (has_tids)
		return bpf_map_lookup_elem(&tids, &tid) ? WANTED : UNWANTED;
	return WANTED;
}

static __always_inline u32 pid_namespace_of(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	u32 level = BPF_CORE_READ(pid, level);
	struct pid_namespace *ns = NULL;
	void *last = (void *)pid + bpf_core_field_offset(pid->numbers);

	last += level * bpf_core_type_size(struct upid) + bpf_core_field_offset(struct upid, ns);
	bpf_probe_read_kernel(&ns, sizeof(ns), last);
	return BPF_CORE_READ(ns, ns.inum);
}

static __always_inline void keep_name(u64 group, u64 flags, struct stats *st)
{
	struct name name = {};
	int err; // before Linux 6.4 the upper half of what an inlined update returns is not set

	bpf_get_current_comm(&name.comm, sizeof(name.comm));
	err = bpf_map_update_elem(&names, &group, &name, flags);
	if (err && err != -EEXIST)
		st->names_full++;
}

// Whose histogram the spans of the current task go to.
static __always_inline void join_group(struct task_state *state, struct task_struct *task,
				       struct stats *st)
{
	u32 tgid, tid;

	if (grouping == BY_PID_NAMESPACE) {
		state->group = pid_namespace_of(task);
		return;
	}
	if (grouping != BY_PROCESS && grouping != BY_THREAD)
		return;
	own_numbers(&tgid, &tid, st);
	state->group = grouping == BY_THREAD ? tid : tgid;
	keep_name(state->group, grouping == BY_THREAD || tgid == tid ? BPF_ANY : BPF_NOEXIST, st);
}

static __noinline int decide(struct task_state *state, struct task_struct *task, struct stats *st)
{
	u32 tgid, tid;

	own_numbers(&tgid, &tid, st);
	state->verdict = state->verdict == ADOPTED ? WANTED : judge(tgid, tid);
	if (state->verdict == WANTED)
		join_group(state, task, st);
	return 0;
}

static __always_inline u64 state_bits(struct task_struct *task)
{
	struct task_struct___before_5_14 *old = (void *)task;

	if (bpf_core_field_exists(task->__state))
		return BPF_CORE_READ(task, __state);
	return BPF_CORE_READ(old, state);
}

// The current task leaves the CPU, for want of something (`blocked`) or of time.
static __always_inline void leave(struct task_struct *task, u64 now_ns, bool blocked, bool dead,
				  bool missed, struct stats *st)
{
	struct task_state *state = state_of(task, true);

	if (!state) {
		st->storage_failed++;
		return;
	}
	if (state->verdict < WANTED)
		decide(state, task, st);
	if (has_cgroup)
		state->outside = bpf_current_task_under_cgroup(&cgroup, 0) != 1;
	if (grouping == BY_CGROUP)
		state->group = bpf_get_current_cgroup_id();
	if (state->pending_ns) {
		if (state->verdict == WANTED && !state->outside)
			add(state->group, state->pending_ns - 1);
		state->pending_ns = 0;
	}
	if (measure == ON_CPU) {
		if (state->since_ns)
			end(state, now_ns, st);
		else if (!missed)
			st->open_at_start++;
	} else if (measure == OFF_CPU ? !dead : !blocked) {
		begin(state, now_ns, st);
	} else if (state->since_ns) { // woken before it slept
		state->since_ns = 0;
		st->given_up++;
	}
	if (dead && !task_storage) {
		u64 address = (u64)task;

		bpf_map_delete_elem(&tasks_by_address, &address);
	}
}

static __always_inline void arrive(struct task_struct *task, u64 now_ns, struct stats *st)
{
	struct task_state *state = state_of(task, measure == ON_CPU);

	if (measure == ON_CPU) {
		if (state)
			begin(state, now_ns, st);
		else
			st->storage_failed++;
	} else if (!state) {
		st->open_at_start++;
	} else if (state->since_ns) {
		end(state, now_ns, st);
	}
}

// Whether the switch to the task that now leaves was not traced.
static __always_inline bool note_running(struct task_struct *prev, struct task_struct *next,
					 struct stats *st)
{
	u32 zero = 0;
	u64 *running_task = bpf_map_lookup_elem(&running, &zero);
	bool missed;

	if (!running_task)
		return false; // not so: there is one for each CPU
	missed = *running_task && *running_task != (u64)prev;
	if (missed)
		st->switches_missed++;
	*running_task = (u64)next;
	return missed;
}

SEC("tp_btf/sched_switch")
int on_switch(u64 *ctx)
{
	u64 now_ns = bpf_ktime_get_ns(), bits;
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	bool preempted = ctx[0], missed;
	struct stats *st;

	if (!phase)
		return 0;
	st = own_stats();
	if (!st)
		return 0; // not so: there is one for each CPU
	missed = note_running(prev, next, st);
	bits = has_prev_state ? (u32)ctx[3] : state_bits(prev);
	if (prev->pid || include_idle)
		leave(prev, now_ns, bits && !preempted, bits & TASK_IS_DEAD, missed, st);
	if (next->pid || include_idle)
		arrive(next, now_ns, st);
	return 0;
}

static __always_inline int woken(struct task_struct *task)
{
	u64 now_ns = bpf_ktime_get_ns();
	struct task_state *state;
	struct stats *st;

	if (!phase)
		return 0;
	st = own_stats();
	state = state_of(task, true);
	if (!st)
		return 0;
	if (state)
		begin(state, now_ns, st);
	else
		st->storage_failed++;
	return 0;
}

SEC("?tp_btf/sched_wakeup")
int on_wakeup(u64 *ctx)
{
	return woken((void *)ctx[0]);
}

SEC("?tp_btf/sched_wakeup_new")
int on_wakeup_new(u64 *ctx)
{
	return woken((void *)ctx[0]);
}

// With -p and a command, a child is followed as its parent is. Its first turn is no end of a sleep.
SEC("tp_btf/task_newtask")
int on_newtask(u64 *ctx)
{
	struct task_struct *child = (void *)ctx[0];
	struct task_state *state, *parent;
	struct stats *st = own_stats();

	if (!phase || !st)
		return 0;
	state = state_of(child, true);
	if (!state) {
		st->storage_failed++;
		return 0;
	}
	if (!has_tgids && !command_tgid)
		return 0;
	parent = state_of((void *)bpf_get_current_task_btf(), true);
	if (!parent)
		return 0;
	if (parent->verdict < WANTED)
		decide(parent, (void *)bpf_get_current_task_btf(), st);
	if (parent->verdict == WANTED)
		state->verdict = ADOPTED;
	return 0;
}

SEC("tp_btf/sched_process_exec")
int on_exec(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct task_state *state;
	struct stats *st = own_stats();

	if (!phase || !st)
		return 0;
	state = state_of(task, true);
	if (!state)
		return 0;
	if (state->verdict < WANTED)
		decide(state, task, st);
	if (state->verdict == AWAITED)
		state->verdict = WANTED;
	if (state->verdict == WANTED)
		join_group(state, task, st);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
