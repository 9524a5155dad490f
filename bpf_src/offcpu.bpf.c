// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Off-CPU time: how long threads do not run, where they wait, and who ends it. For the wall clock
// also how long they run, and samples of where.
//
// A thread's time is cut at its switches. What it does between two of them is in its state, which
// one CPU at a time writes: the one that switches it, under the lock of its run queue. Threads that
// were off when the run began, or still are when it ends, are listed by an iterator, which changes
// nothing: see docs/design/0009-off-cpu-time.md.
#include "comm.h"
#include "cpus.h"
#include "sched_switch.h"
#include "offcpu/account.h"
#include "offcpu/list.h"

#define TIMED 64 // every so many switches, the program takes its own time

// What a CPU runs.
struct running {
	u64 since_ns;
	u32 tid; // in the initial namespace
	u32 verdict;
};

CONFIG bool wakers = false;	   // remember who woke: with `split`
CONFIG bool on_cpu_wanted = false; // the time that threads run, too
CONFIG bool user_threads = true;
CONFIG bool kernel_threads = true;

bool phase = false; // on
u64 started_ns = 0;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct running);
} running SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct sample_key);
	__type(value, u64);
} samples SEC(".maps");

// Of a new task and of execve, whose programs an interrupt's may interrupt: it counts here, too.
static __always_inline void number(u32 *tgid, u32 *tid, struct stats *st)
{
	if (!own_numbers(bpf_get_current_pid_tgid(), true, tgid, tid))
		__sync_fetch_and_add(&st->outside_namespace, 1);
}

static __always_inline bool kind_wanted(struct task_struct *task)
{
	if (user_threads && kernel_threads)
		return true;
	return BPF_CORE_READ(task, flags) & PF_KTHREAD ? kernel_threads : user_threads;
}

static __always_inline void decide(struct task_state *state, struct task_struct *task,
				   struct stats *st)
{
	bool numbered =
		own_numbers(bpf_get_current_pid_tgid(), true, &state->key.tgid, &state->key.tid);

	state->verdict = judge(state->verdict, state->key.tgid, state->key.tid);
	if (!kind_wanted(task))
		state->verdict = UNWANTED;
	if (!numbered && state->verdict == WANTED)
		__sync_fetch_and_add(&st->outside_namespace, 1);
}

static __always_inline void account_running(struct task_state *state, u64 now_ns, u32 cpu,
					    struct stats *st)
{
	struct sum sum = {.count = 1};
	struct sum_key key = {.state = STATE_ON_CPU};
	u64 since_ns = state->place == ON_CPU ? state->since_ns : started_ns;

	if (!cpu_wanted(cpu))
		return;
	key.tgid = state->key.tgid;
	key.tid = state->key.tid;
	__builtin_memcpy(key.comm, state->key.comm, sizeof(key.comm));
	if (now_ns > since_ns)
		sum.blocked_ns = now_ns - since_ns;
	add(&key, &sum, st);
}

// The current task came to this CPU from another one whose switches are not traced: there are
// kernels that hide some. It cannot have come before the last switch that was traced here.
static __always_inline void arrived_unseen(struct task_state *state, struct stats *st)
{
	u32 zero = 0;
	struct running *slot = bpf_map_lookup_elem(&running, &zero);
	u64 came_ns = state->since_ns;

	st->switches_missed++;
	if (slot && slot->since_ns > came_ns)
		came_ns = slot->since_ns;
	account(&state->key, state->since_ns, came_ns, state->waking_ns, state->cpu);
	no_waker(&state->key);
	state->waking_ns = 0;
	state->since_ns = came_ns;
	state->place = ON_CPU;
}

// Task storage goes with the task.
static __always_inline void forget(struct task_struct *task, u32 why)
{
	if (!task_storage && why == STATE_DEAD)
		forget_by_address((u64)task);
}

// Of the states asked for: whether a thread may turn out to be in one of them.
static __always_inline bool may_count(u32 why)
{
	u32 asked = states;

	if (why == STATE_SLEEPING && asked >> STATE_GIL & 1)
		return true;
	return asked >> why & 1;
}

// Tells waits for Python's lock from others. The registers of the task have been read if it has a
// user stack.
static __always_inline void find_gil(struct task_state *state)
{
	u32 place = SWITCH_PLACE, holder;
	struct missed_stack *record = bpf_map_lookup_elem(&missed, &place);
	u64 address = 0;

	state->key.holder = 0;
	if (!python || !user_stacks || call_graph == BY_FRAME_POINTERS)
		return;
	if (!record || state->key.user_stack == STACK_NONE)
		return;
	if (state->key.state == STATE_SLEEPING && record->registers.orig_ax == CALL_FUTEX)
		address = record->registers.di;
	holder = gil_waited_for(record->process, record->identity, address, state->key.tid);
	if (holder == WAITS_FOR_OTHERS)
		return;
	state->key.state = STATE_GIL;
	if (holder != HOLDER_UNKNOWN)
		state->key.holder = holder;
}

// The current task leaves its CPU, for a reason.
static __always_inline void leave_cpu(void *ctx, struct task_struct *task, u32 why, u64 now_ns,
				      struct stats *st)
{
	struct task_state *state = state_of(task, true);
	u32 cpu = bpf_get_smp_processor_id();

	if (!state) {
		st->storage_failed++;
		return;
	}
	if (needs_verdict(state->verdict))
		decide(state, task, st);
	if (state->verdict != WANTED || !in_scope()) {
		state->place = ASIDE;
		state->pending_ns = 0;
		forget(task, why);
		return;
	}
	read_comm(&state->key.comm);
	account_pending(state);
	if (state->place == OFF_CPU)
		arrived_unseen(state, st);
	if (on_cpu_wanted && state->place <= ON_CPU)
		account_running(state, now_ns, cpu, st);
	state->place = ASIDE;
	forget(task, why);
	if (!may_count(why) || !cpu_wanted(cpu))
		return;
	if (why == STATE_RUNNING) {
		state->waking_ns = 0;
		no_waker(&state->key);
	}
	state->key.kernel_stack = kernel_stack_of(ctx, SWITCH_PLACE);
	state->key.user_stack = user_stack_by_ticket(ctx, SWITCH_PLACE, state->key.tgid, false);
	state->key.state = why;
	find_gil(state);
	if (!(states >> state->key.state & 1))
		return;
	state->since_ns = now_ns;
	state->cpu = cpu;
	state->place = OFF_CPU;
}

// A task that is not the current one yet comes to this CPU.
static __always_inline struct task_state *arrive(struct task_struct *task, u64 now_ns,
						 struct stats *st)
{
	struct task_state *state = state_of(task, true);

	if (!state) {
		st->storage_failed++;
		return NULL;
	}
	if (state->verdict == UNWANTED)
		return state;
	if (state->place == OFF_CPU) {
		if (state->verdict == WANTED) {
			account(&state->key, state->since_ns, now_ns, state->waking_ns, state->cpu);
		} else {
			state->pending_ns = now_ns - state->since_ns;
			state->pending_state = STATE_RUNNING;
		}
	} else if (state->place == ON_CPU) {
		st->switches_missed++;
	} else if (state->place == UNSEEN) {
		if (task->start_time < started_ns) {
			state->pending_ns = now_ns - started_ns;
			state->pending_state = STATE_BEFORE;
			state->pending_waking_ns = state->waking_ns;
			state->cpu = bpf_get_smp_processor_id();
		} else {
			state->pending_ns = now_ns - task->start_time;
			state->pending_state = STATE_RUNNING;
			st->births_missed++;
		}
	}
	if (wakers && !state->pending_ns)
		no_waker(&state->key);
	state->waking_ns = 0;
	state->since_ns = now_ns;
	state->place = ON_CPU;
	return state;
}

static __always_inline void now_runs(struct task_struct *task, struct task_state *state, u64 now_ns)
{
	u32 zero = 0;
	struct running *slot = bpf_map_lookup_elem(&running, &zero);

	if (!slot)
		return;
	slot->since_ns = now_ns;
	slot->tid = task->pid;
	slot->verdict = state ? state->verdict : UNDECIDED;
}

SEC("tp_btf/sched_switch")
int on_switch(u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	u64 now_ns = bpf_ktime_get_ns();
	struct task_state *state = NULL;
	struct stats *st;

	if (!phase)
		return 0;
	st = stats_of(SWITCH_PLACE);
	if (!st)
		return 0; // not so: there is one for each CPU
	if (prev->pid) {
		leave_cpu(ctx, prev, state_from(preempted(ctx) ? 0 : left_in(ctx)), now_ns, st);
	}
	if (next->pid)
		state = arrive(next, now_ns, st);
	now_runs(next, state, now_ns);
	if (st->switches++ % TIMED == 0) {
		st->timed++;
		st->run_time_ns += bpf_ktime_get_ns() - now_ns;
	}
	return 0;
}

// In the context of who wakes, unlike sched_wakeup, which may run on the CPU of the woken.
SEC("?tp_btf/sched_waking")
int on_waking(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	u64 now_ns = bpf_ktime_get_ns();
	struct task_state *state;
	struct stats *st;

	if (!phase)
		return 0;
	st = stats_of(SWITCH_PLACE);
	state = state_of(task, true);
	if (!st || !state) {
		if (st)
			st->storage_failed++;
		return 0;
	}
	if (state->verdict == UNWANTED)
		return 0;
	// Preempted on its way to sleep: it is runnable as it is, and may arrive at this moment.
	if (state->place == OFF_CPU && state->key.state == STATE_RUNNING)
		return 0;
	state->waking_ns = now_ns;
	if (!wakers)
		return 0;
	number(&state->key.waker_tgid, &state->key.waker_tid, st);
	read_comm(&state->key.waker_comm);
	state->key.waker_kernel_stack = kernel_stack_of(ctx, SWITCH_PLACE);
	state->key.waker_user_stack =
		user_stack_by_ticket(ctx, SWITCH_PLACE, state->key.waker_tgid, false);
	return 0;
}

static __always_inline u8 inherited(struct stats *st)
{
	struct task_state *parent;

	if (!children_follow())
		return UNDECIDED;
	parent = state_of(own_task(), true);
	if (!parent)
		return UNDECIDED;
	if (!decided(parent->verdict))
		decide(parent, (void *)bpf_get_current_task(), st);
	return parent->verdict == WANTED ? ADOPTED : UNDECIDED;
}

SEC("tp_btf/task_newtask")
int on_newtask(u64 *ctx)
{
	struct task_struct *child = (void *)ctx[0];
	struct stats *st = stats_of(SWITCH_PLACE);
	struct task_state *state;

	if (!phase || !st)
		return 0;
	state = state_of(child, true);
	if (!state) {
		__sync_fetch_and_add(&st->storage_failed, 1);
		return 0;
	}
	state->verdict = inherited(st);
	state->key.state = STATE_RUNNING;
	state->since_ns = bpf_ktime_get_ns();
	state->place = OFF_CPU;
	return 0;
}

SEC("tp_btf/sched_process_exec")
int on_exec(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct stats *st = stats_of(SWITCH_PLACE);
	struct task_state *state;
	u8 before;

	if (!phase || !st)
		return 0;
	state = state_of(task, true);
	if (!state)
		return 0; // counted when it leaves
	before = state->verdict;
	if (needs_verdict(before))
		decide(state, (void *)bpf_get_current_task(), st);
	if (state->verdict == AWAITED ||
	    (has_names && before != WANTED && state->verdict == WANTED)) {
		state->verdict = WANTED;
		state->pending_ns = 0;
		state->since_ns = bpf_ktime_get_ns();
		state->place = ON_CPU;
	}
	if (state->verdict == WANTED) // a thread takes over its leader's
		number(&state->key.tgid, &state->key.tid, st);
	return 0;
}

// Where the wall clock has a CPU spend its time.
SEC("?perf_event")
int on_sample(void *ctx)
{
	struct sample_key key = {};
	u64 both = bpf_get_current_pid_tgid(), first = 1, *found;
	struct stats *st = stats_of(SAMPLE_PLACE);
	struct running *slot;
	u32 zero = 0;

	if (!phase || !st || !(u32)both)
		return 0;
	slot = bpf_map_lookup_elem(&running, &zero);
	if (!has_names && slot && slot->tid == (u32)both && slot->verdict == UNWANTED) {
		st->samples_aside++;
		return 0;
	}
	number(&key.tgid, &key.tid, st);
	if (has_names && !listed(key.tgid, key.tid)) {
		st->samples_aside++;
		return 0;
	}
	bpf_get_current_comm(&key.comm, sizeof(key.comm));
	key.kernel_stack = kernel_stack_of(ctx, SAMPLE_PLACE);
	key.user_stack = user_stack_by_ticket(ctx, SAMPLE_PLACE, key.tgid, true);
	found = bpf_map_lookup_elem(&samples, &key);
	if (found)
		++*found; // a thread is on one CPU at a time
	else if (bpf_map_update_elem(&samples, &key, &first, BPF_NOEXIST))
		st->samples_full++;
	else
		st->samples++;
	if (found)
		st->samples++;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
