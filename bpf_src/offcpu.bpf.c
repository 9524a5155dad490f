// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Off-CPU time: how long threads do not run, where they wait, and who ends it. For the wall clock
// also how long they run, and samples of where.
//
// A thread's time is cut at its switches. What it does between two of them is in its state, which
// one CPU at a time writes: the one that switches it, under the lock of its run queue. Threads that
// were off when the run began, or still are when it ends, are listed by an iterator, which changes
// nothing: see docs/design/0009-off-cpu-time.md.
#include "purebpf.h"
#include <bpf/bpf_core_read.h>

// The switch, the wake-up, the sample and the list may interrupt one another.
#define PLACES 3
#include "stacks.h"

#define SWITCH_PLACE 0 // and wake-ups: both have interrupts off
#define SAMPLE_PLACE 1
#define LIST_PLACE 2

#define MAX_CPUS 4096 // that -C can name
#define TIMED 64      // every so many switches, the program takes its own time

// What becomes of a task. It is decided when it first leaves a CPU.
enum verdict {
	UNDECIDED = 0,
	ADOPTED = 1, // as UNDECIDED, but wanted for the sake of its parent
	WANTED = 2,
	UNWANTED = 3,
	AWAITED = 4, // the command, until its execve succeeds
};

enum place {
	UNSEEN = 0, // since before the run began
	ON_CPU = 1,
	OFF_CPU = 2,
	ASIDE = 3, // off the CPU in a state that was not asked for, or dead
};

// Why a task is not running: TASK_* of the kernel's sched.h, one each.
enum state {
	STATE_RUNNING = 0, // preempted, or waiting for its first run
	STATE_SLEEPING = 1,
	STATE_DISK = 2, // uninterruptible
	STATE_IDLE = 3,
	STATE_STOPPED = 4,
	STATE_TRACED = 5,
	STATE_PARKED = 6,
	STATE_WAKING = 7, // before Linux 5.18: a wake-up was faster than the tracepoint
	STATE_BEFORE = 8, // off since before the run began: the list at the start says why
	STATE_ON_CPU = 9,
	STATE_DEAD = 10,
};

// Where a time goes.
struct sum_key {
	u64 user_stack;
	u64 kernel_stack;
	u64 waker_user_stack;
	u64 waker_kernel_stack;
	u32 tgid;
	u32 tid;
	u32 waker_tgid;
	u32 waker_tid;
	char comm[TASK_COMM_LEN];
	char waker_comm[TASK_COMM_LEN];
	u32 state;
	u32 pad;
};

struct sum {
	u64 count;
	u64 blocked_ns;	 // until it was woken; in state ON_CPU: running
	u64 runnable_ns; // from then on, or from a preemption on; all of it is in blocked_ns where
			 // wake-ups are not traced
};

// A time at or above the threshold.
struct direct_sample {
	u64 ended_ns;
	u64 blocked_ns;
	u64 runnable_ns;
	u32 cpu;
	u32 pad;
	struct sum_key key;
};

// What is known of a task. Times are nanoseconds of CLOCK_MONOTONIC.
struct task_state {
	u64 since_ns;	// when it came to where it is
	u64 waking_ns;	// when it was last woken since it last ran
	u64 pending_ns; // how long it was off before it could be judged, up to since_ns
	u64 pending_waking_ns;
	struct sum_key key;
	u32 cpu; // that it left
	u8 verdict;
	u8 place;
	u8 pending_state;
	u8 pad;
};

// What a CPU runs.
struct running {
	u64 since_ns;
	u32 tid; // in the initial namespace
	u32 verdict;
};

struct sample_key {
	u64 user_stack;
	u64 kernel_stack;
	u32 tgid;
	u32 tid;
	char comm[TASK_COMM_LEN];
};

// One event per line, in times that a thread was off the CPU except where it says otherwise.
struct stats {
	u64 switches;	       // the program ran
	u64 run_time_ns;       // spent in it, at `timed` of them
	u64 timed;	       //
	u64 counted;	       // in `sums`
	u64 direct;	       // in `direct_samples`
	u64 filtered;	       // shorter than min_ns or longer than max_ns
	u64 sums_full;	       // `sums` had no place
	u64 ring_full;	       // `direct_samples` had no place: it is in `sums`
	u64 storage_failed;    // switches of a task that found no place for its state
	u64 births_missed;     // tasks that were not seen to begin, so that none was followed
	u64 switches_missed;   // a task left, or came, without a switch that was traced
	u64 clock_backwards;   // counted with 0 ns
	u64 outside_namespace; // tasks without a pid in our pid namespace
	u64 samples;	       // in `samples`
	u64 samples_full;      // samples that found no place
	u64 samples_aside;     // samples of what was not asked for
};

CONFIG bool user_stacks = true;
CONFIG bool kernel_stacks = true;
CONFIG bool task_storage = true;   // else `tasks_by_address`
CONFIG bool task_pt_regs = true;   // bpf_task_pt_regs() is there (Linux 5.15)
CONFIG bool has_prev_state = true; // sched_switch passes it (Linux 5.18)
CONFIG bool split = false;	   // tell blocked from runnable: wake-ups are traced
CONFIG bool wakers = false;	   // and remembered
CONFIG bool on_cpu_wanted = false; // the time that threads run, too
CONFIG u32 states = ~1U;	   // those asked for: 1 << enum state
CONFIG u64 threshold_ns = ~0ULL;
CONFIG u64 min_ns = 0;
CONFIG u64 max_ns = ~0ULL;
CONFIG bool user_threads = true;
CONFIG bool kernel_threads = true;
CONFIG bool has_tgids = false;	// only the processes in `tgids`, and their children from now on
CONFIG bool has_tids = false;	// only the threads in `tids`
CONFIG bool has_cgroup = false; // only below the cgroup in `cgroup`
CONFIG bool has_cpus = false;	// only what is left on these
CONFIG u64 cpus[MAX_CPUS / 64] = {};
CONFIG u32 own_tgid = 0;	    // who is asking: left out
CONFIG u32 command_tgid = 0;	    // the command to run: from its execve on
CONFIG u64 pid_namespace_dev = 0; // the namespace to number tasks in; 0: the initial one
CONFIG u64 pid_namespace_ino = 0;

bool phase = false; // on
u64 started_ns = 0;

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

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct running);
} running SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 40960);
	__type(key, struct sum_key);
	__type(value, struct sum);
} sums SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct sample_key);
	__type(value, u64);
} samples SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} direct_samples SEC(".maps");

struct direct_sample *direct_samples_record;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PLACES);
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

// The parts of the kernel's structs that are used here, found at load time by their names.
struct upid {
	int nr;
} __attribute__((preserve_access_index));

struct pid {
	unsigned int level;
	struct upid numbers[1];
} __attribute__((preserve_access_index));

struct thread_info {
	u32 cpu;
} __attribute__((preserve_access_index));

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	unsigned int flags;
	unsigned int on_cpu; // one byte on some kernels (7.2)
	int pid;
	int tgid;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	u64 start_time;
	char comm[TASK_COMM_LEN];
} __attribute__((preserve_access_index));

struct task_struct___before_5_14 {
	long state;
	unsigned int cpu; // before Linux 5.16, which moved it into thread_info
} __attribute__((preserve_access_index));

struct pt_regs {
	unsigned long ip; // x86
	unsigned long sp;
	unsigned long bp;
} __attribute__((preserve_access_index));

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} __attribute__((preserve_access_index));

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} __attribute__((preserve_access_index));

#define PF_KTHREAD 0x00200000 // include/linux/sched.h

// include/linux/sched.h, since Linux 4.14
#define TASK_INTERRUPTIBLE 0x1
#define TASK_UNINTERRUPTIBLE 0x2
#define TASK_STOPPED 0x4
#define TASK_TRACED 0x8
#define TASK_PARKED 0x40
#define TASK_IS_DEAD 0xb0 // EXIT_DEAD, EXIT_ZOMBIE, TASK_DEAD
#define TASK_WAKING 0x200
#define TASK_NOLOAD 0x400

static const struct task_state no_state;
static const struct sum no_sum;

static __always_inline struct stats *stats_of(u32 place)
{
	return bpf_map_lookup_elem(&stats, &place);
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

// Task storage goes with the task.
static __always_inline void forget(struct task_struct *task)
{
	u64 address = (u64)task;

	if (!task_storage)
		bpf_map_delete_elem(&tasks_by_address, &address);
}

static __always_inline u32 state_from(u64 bits)
{
	if (!bits)
		return STATE_RUNNING;
	if (bits & TASK_IS_DEAD)
		return STATE_DEAD;
	if (bits & TASK_STOPPED)
		return STATE_STOPPED;
	if (bits & TASK_TRACED)
		return STATE_TRACED;
	if (bits & TASK_PARKED)
		return STATE_PARKED;
	if (bits & TASK_INTERRUPTIBLE)
		return STATE_SLEEPING;
	if (bits & TASK_UNINTERRUPTIBLE)
		return bits & TASK_NOLOAD ? STATE_IDLE : STATE_DISK;
	if (bits & TASK_WAKING)
		return STATE_WAKING;
	return STATE_DISK; // TASK_RTLOCK_WAIT, TASK_FROZEN: only the right event ends them
}

static __always_inline u64 state_bits(struct task_struct *task)
{
	struct task_struct___before_5_14 *old = (void *)task;

	if (bpf_core_field_exists(task->__state))
		return BPF_CORE_READ(task, __state);
	return BPF_CORE_READ(old, state);
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

static __always_inline bool kind_wanted(struct task_struct *task)
{
	if (user_threads && kernel_threads)
		return true;
	return task->flags & PF_KTHREAD ? kernel_threads : user_threads;
}

static __always_inline u8 judge(u32 tgid, u32 tid)
{
	if (tgid == own_tgid)
		return UNWANTED;
	if (command_tgid)
		return tgid == command_tgid ? AWAITED : UNWANTED;
	if (has_tgids)
		return bpf_map_lookup_elem(&tgids, &tgid) ? WANTED : UNWANTED;
	if (has_tids)
		return bpf_map_lookup_elem(&tids, &tid) ? WANTED : UNWANTED;
	return WANTED;
}

static __always_inline bool cpu_wanted(u32 cpu)
{
	if (!has_cpus)
		return true;
	return cpu < MAX_CPUS && cpus[cpu / 64] >> (cpu % 64) & 1;
}

// False: the ring is full.
static __always_inline bool send(struct sum_key *key, struct sum *sum, u64 ended_ns, u32 cpu)
{
	struct direct_sample *sample = bpf_ringbuf_reserve(&direct_samples, sizeof(*sample), 0);

	if (!sample)
		return false;
	sample->ended_ns = ended_ns;
	sample->blocked_ns = sum->blocked_ns;
	sample->runnable_ns = sum->runnable_ns;
	sample->cpu = cpu;
	sample->pad = 0;
	sample->key = *key;
	bpf_ringbuf_submit(sample, 0);
	return true;
}

// One CPU at a time switches a task, and the key names the task: there is one writer.
static __always_inline void add(struct sum_key *key, struct sum *more, struct stats *st)
{
	struct sum *sum = bpf_map_lookup_elem(&sums, key);

	if (!sum) {
		bpf_map_update_elem(&sums, key, &no_sum, BPF_NOEXIST);
		sum = bpf_map_lookup_elem(&sums, key);
		if (!sum) {
			st->sums_full++;
			return;
		}
	}
	sum->count++;
	sum->blocked_ns += more->blocked_ns;
	sum->runnable_ns += more->runnable_ns;
	st->counted++;
}

// A task was off the CPU from `since_ns` to `until_ns`.
static __noinline int account(struct sum_key *key, u64 since_ns, u64 until_ns, u64 waking_ns,
			      u32 cpu)
{
	struct sum sum = {.count = 1};
	s64 elapsed_ns = until_ns - since_ns;
	struct stats *st = stats_of(SWITCH_PLACE);

	if (!st || !key)
		return 0;
	if (elapsed_ns < 0) {
		st->clock_backwards++;
		elapsed_ns = 0;
	}
	if (elapsed_ns < min_ns || elapsed_ns > max_ns) {
		st->filtered++;
		return 0;
	}
	sum.blocked_ns = elapsed_ns;
	if (split) {
		if (key->state == STATE_RUNNING)
			sum.blocked_ns = 0;
		else if (waking_ns && waking_ns <= since_ns)
			sum.blocked_ns = 0; // woken while it was on its way
		else if (waking_ns && waking_ns < until_ns)
			sum.blocked_ns = waking_ns - since_ns;
		sum.runnable_ns = elapsed_ns - sum.blocked_ns;
	}
	if (elapsed_ns >= threshold_ns) {
		if (send(key, &sum, until_ns, cpu)) {
			st->direct++;
			return 0;
		}
		st->ring_full++;
	}
	add(key, &sum, st);
	return 0;
}

static __always_inline void no_waker(struct sum_key *key)
{
	key->waker_user_stack = 0;
	key->waker_kernel_stack = 0;
	key->waker_tgid = 0;
	key->waker_tid = 0;
	__builtin_memset(key->waker_comm, 0, sizeof(key->waker_comm));
}

// What happened to a task before it was known whether it is wanted.
static __always_inline void account_pending(struct task_state *state)
{
	if (!state->pending_ns)
		return;
	state->key.state = state->pending_state;
	state->key.user_stack = STACK_NONE;
	state->key.kernel_stack = STACK_NONE;
	if (states >> state->pending_state & 1)
		account(&state->key, state->since_ns - state->pending_ns, state->since_ns,
			state->pending_waking_ns, state->cpu);
	state->pending_ns = 0;
	no_waker(&state->key);
}

static __always_inline void decide(struct task_state *state, struct task_struct *task,
				   struct stats *st)
{
	own_numbers(&state->key.tgid, &state->key.tid, st);
	if (state->verdict == UNDECIDED)
		state->verdict = judge(state->key.tgid, state->key.tid);
	else if (state->verdict == ADOPTED)
		state->verdict = WANTED;
	if (!kind_wanted(task))
		state->verdict = UNWANTED;
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

// The current task leaves its CPU, for a reason.
static __always_inline void leave(void *ctx, struct task_struct *task, u32 why, u64 now_ns,
				  struct stats *st)
{
	struct task_state *state = state_of(task, true);
	u32 cpu = bpf_get_smp_processor_id();

	if (!state) {
		st->storage_failed++;
		return;
	}
	if (state->verdict < WANTED)
		decide(state, task, st);
	if (state->verdict != WANTED || (has_cgroup && bpf_current_task_under_cgroup(&cgroup, 0) != 1)) {
		state->place = ASIDE;
		state->pending_ns = 0;
		if (why == STATE_DEAD)
			forget(task);
		return;
	}
	bpf_get_current_comm(&state->key.comm, sizeof(state->key.comm));
	account_pending(state);
	if (state->place == OFF_CPU)
		arrived_unseen(state, st);
	if (on_cpu_wanted && state->place <= ON_CPU)
		account_running(state, now_ns, cpu, st);
	state->place = ASIDE;
	if (why == STATE_DEAD) {
		forget(task);
		return;
	}
	if (!(states >> why & 1) || !cpu_wanted(cpu))
		return;
	if (why == STATE_RUNNING) {
		state->waking_ns = 0;
		no_waker(&state->key);
	}
	if (user_stacks)
		state->key.user_stack = walk(ctx, SWITCH_PLACE, 0);
	if (kernel_stacks)
		state->key.kernel_stack = walk(ctx, SWITCH_PLACE, KERNEL_BIT);
	state->key.state = why;
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
			account(&state->key, state->since_ns, now_ns, state->waking_ns,
				state->cpu);
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
	bool preempted = ctx[0] & 1;
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	u64 now_ns = bpf_ktime_get_ns(), bits;
	struct task_state *state = NULL;
	struct stats *st;

	if (!phase)
		return 0;
	st = stats_of(SWITCH_PLACE);
	if (!st)
		return 0; // not so: there is one for each CPU
	if (prev->pid) {
		bits = preempted ? 0 : has_prev_state ? (u32)ctx[3] : state_bits(prev);
		leave(ctx, prev, state_from(bits), now_ns, st);
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
	own_numbers(&state->key.waker_tgid, &state->key.waker_tid, st);
	bpf_get_current_comm(&state->key.waker_comm, sizeof(state->key.waker_comm));
	if (user_stacks)
		state->key.waker_user_stack = walk(ctx, SWITCH_PLACE, 0);
	if (kernel_stacks)
		state->key.waker_kernel_stack = walk(ctx, SWITCH_PLACE, KERNEL_BIT);
	return 0;
}

// The current task, with a type where there is task storage (which wants one).
static __always_inline struct task_struct *own_task(void)
{
	return task_storage ? bpf_get_current_task_btf() : (void *)bpf_get_current_task();
}

// With -p and a command, a child is followed as its parent is.
static __always_inline u8 inherited(struct stats *st)
{
	struct task_struct *task = own_task();
	struct task_state *parent;

	if (!has_tgids && !command_tgid)
		return UNDECIDED;
	parent = state_of(task, true);
	if (!parent)
		return UNDECIDED;
	if (parent->verdict < WANTED)
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

	if (!phase || !st)
		return 0;
	state = state_of(task, true);
	if (!state)
		return 0; // counted when it leaves
	if (state->verdict < WANTED)
		decide(state, (void *)bpf_get_current_task(), st);
	if (state->verdict == AWAITED) {
		state->verdict = WANTED;
		state->pending_ns = 0;
		state->since_ns = bpf_ktime_get_ns();
		state->place = ON_CPU;
	}
	own_numbers(&state->key.tgid, &state->key.tid, st); // a thread takes over its leader's
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
	if (slot && slot->tid == (u32)both && slot->verdict == UNWANTED) {
		st->samples_aside++;
		return 0;
	}
	own_numbers(&key.tgid, &key.tid, st);
	bpf_get_current_comm(&key.comm, sizeof(key.comm));
	if (user_stacks)
		key.user_stack = walk(ctx, SAMPLE_PLACE, 0);
	if (kernel_stacks)
		key.kernel_stack = walk(ctx, SAMPLE_PLACE, KERNEL_BIT);
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

// A task at the start or the end of a run. Where the programs have not seen it yet, its state is
// empty but for numbers, name and kernel stack.
struct listed_task {
	struct task_state known;
	u64 ip; // where it is in user space, and what is needed to walk on from there; 0: not known
	u64 sp;
	u64 bp;
	u32 state;
	u8 on_cpu;
	u8 is_kernel_thread;
	u8 pad[2];
};

struct listed_task *anchor_listed_task; // keeps the type in BTF

static __always_inline u32 number_of(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	u32 level = BPF_CORE_READ(pid, level), number = 0;
	void *numbers = (void *)pid + bpf_core_field_offset(pid->numbers);

	bpf_probe_read_kernel(&number, sizeof(number),
			      numbers + level * bpf_core_type_size(struct upid));
	return number;
}

static __always_inline u32 cpu_of(struct task_struct *task)
{
	struct task_struct___before_5_14 *old = (void *)task;

	if (bpf_core_field_exists(task->thread_info.cpu))
		return BPF_CORE_READ(task, thread_info.cpu);
	return bpf_core_field_exists(old->cpu) ? BPF_CORE_READ(old, cpu) : 0;
}

static __always_inline void describe(struct listed_task *listed, struct task_struct *task)
{
	u32 place = LIST_PLACE;
	struct stack *room = bpf_map_lookup_elem(&scratch, &place);
	struct pt_regs *regs;
	long size;

	listed->known.cpu = cpu_of(task);
	listed->known.key.tgid = task->tgid;
	listed->known.key.tid = task->pid;
	if (pid_namespace_ino) {
		listed->known.key.tid = number_of(task);
		listed->known.key.tgid = number_of(task->group_leader);
	}
	BPF_CORE_READ_STR_INTO(&listed->known.key.comm, task, comm);
	if (listed->on_cpu || !room)
		return;
	if (kernel_stacks) {
		size = bpf_get_task_stack(task, room->addresses, sizeof(room->addresses), 0);
		listed->known.key.kernel_stack = // lost only if the task is wanted
			size < 0 ? STACK_UNAVAILABLE : keep(place, KERNEL_BIT, size);
	}
	if (!user_stacks || !task_pt_regs || listed->is_kernel_thread)
		return;
	regs = (void *)bpf_task_pt_regs(task);
	if (!bpf_core_field_exists(regs->bp))
		return;
	listed->ip = BPF_CORE_READ(regs, ip);
	listed->sp = BPF_CORE_READ(regs, sp);
	listed->bp = BPF_CORE_READ(regs, bp);
}

SEC("?iter/task")
int list_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct listed_task listed = {};
	struct task_state *state;

	if (!task)
		return 0;
	listed.on_cpu = task->on_cpu != 0;
	listed.is_kernel_thread = (task->flags & PF_KTHREAD) != 0;
	listed.state = state_from(state_bits(task));
	state = state_of(task, false);
	if (state)
		listed.known = *state;
	if (listed.known.verdict == UNWANTED)
		return 0;
	if (listed.known.verdict < WANTED || listed.known.place == UNSEEN)
		describe(&listed, task);
	bpf_seq_write(ctx->meta->seq, &listed, sizeof(listed));
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
