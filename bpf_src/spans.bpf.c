// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// How long spans of scheduling take, as histograms: waits in the run queue, turns on the CPU, or
// times off it.
//
// A span begins and ends in the state of its task, which is written by one CPU at a time: the one
// that holds the lock of the task's run queue. A histogram is written by the one CPU that its key
// names, with interrupts off.
#include "cpus.h"
#include "histogram.h"
#include "map_entry.h"
#include "names.h"
#include "pid_namespace.h"
#include "sched_switch.h"
#include "verdict.h"

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

struct task_state {
	u64 since_ns;	// when its span began, on CLOCK_MONOTONIC; 0: none is open
	u64 pending_ns; // 1 + a span that ended before the task was decided on
	u64 group;
	u8 verdict;
	u8 outside; // of the cgroup or the user asked for, when it last left a CPU
	u8 pad[6];
};

#include "task_state.h"

struct distribution_key {
	u64 group;
	u32 cpu;
	u32 pad;
};

struct distribution {
	u64 total_ns;
	u64 buckets[BUCKETS]; // of spans in units
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
	u64 outside_namespace; // times a task in a group by number had none in our pid namespace
};

CONFIG u32 measure = RUN_QUEUE;
CONFIG u32 grouping = BY_NOTHING;
CONFIG u64 unit_ns = 1000;
CONFIG bool include_idle = false;

bool phase = false; // on

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

static const struct distribution no_distribution;

static __always_inline struct stats *own_stats(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&stats, &zero);
}

static __always_inline void begin(struct task_state *state, u64 now_ns, struct stats *st)
{
	if (!state->since_ns)
		st->begun++;
	state->since_ns = now_ns;
}

static __noinline int add(u64 group, u64 span_ns)
{
	struct distribution_key key = {.group = group, .cpu = bpf_get_smp_processor_id()};
	struct stats *st = own_stats();
	struct distribution *row;
	u32 zero = 0;

	if (!st || !cpu_wanted(key.cpu))
		return 0;
	if (grouping == BY_NOTHING)
		row = bpf_map_lookup_elem(&total, &zero);
	else
		row = find_or_add(&rows, &key, &no_distribution);
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
	if (!decided(state->verdict))
		state->pending_ns = span_ns + 1;
	else if (state->verdict == WANTED && !state->outside)
		add(state->group, span_ns);
}

// Whose histogram the spans of the current task go to: also of a new task and of execve, whose
// programs an interrupt's may interrupt, which counts here, too.
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
	if (!own_numbers(bpf_get_current_pid_tgid(), true, &tgid, &tid))
		__sync_fetch_and_add(&st->outside_namespace, 1);
	state->group = grouping == BY_THREAD ? tid : tgid;
	if (!keep_name(state->group, grouping == BY_THREAD || tgid == tid ? BPF_ANY : BPF_NOEXIST))
		__sync_fetch_and_add(&st->names_full, 1);
}

static __noinline int decide(struct task_state *state, struct task_struct *task, struct stats *st)
{
	u32 tgid, tid;

	own_numbers(bpf_get_current_pid_tgid(), true, &tgid, &tid);
	state->verdict = judge(state->verdict, tgid, tid);
	if (state->verdict == WANTED)
		join_group(state, task, st);
	return 0;
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
	if (needs_verdict(state->verdict))
		decide(state, task, st);
	if (has_cgroup || has_uid)
		state->outside = !in_scope();
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
	if (dead && !task_storage)
		forget_by_address((u64)task);
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
	bool missed;
	struct stats *st;

	if (!phase)
		return 0;
	st = own_stats();
	if (!st)
		return 0; // not so: there is one for each CPU
	missed = note_running(prev, next, st);
	bits = left_in(ctx);
	if (prev->pid || include_idle)
		leave(prev, now_ns, bits && !preempted(ctx), bits & TASK_IS_DEAD, missed, st);
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

// A child's first turn is no end of a sleep.
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
		__sync_fetch_and_add(&st->storage_failed, 1);
		return 0;
	}
	if (!children_follow())
		return 0;
	parent = state_of(own_task(), true);
	if (!parent)
		return 0;
	if (!decided(parent->verdict))
		decide(parent, (void *)bpf_get_current_task(), st);
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
	if (needs_verdict(state->verdict))
		decide(state, task, st);
	if (state->verdict == AWAITED)
		state->verdict = WANTED;
	if (state->verdict == WANTED)
		join_group(state, task, st);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
