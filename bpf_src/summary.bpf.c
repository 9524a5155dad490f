// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// System call summary: counts and times every call, exactly and without locks.
//
// A call opens in the state of its task and closes in statistics that have one writer each: the
// programs run with preemption off, or are kept from nesting, so a row that names its CPU (or its
// thread) is written by nobody else. See docs/design/0003-summary-statistics.md.
#include "histogram.h"
#include <bpf/bpf_core_read.h>

typedef __u16 u16;

#define SLOTS 512	 // numbers of each ABI that have a place in `totals`
#define EPOCHS 2	 // one is written while the other one is read
#define MAX_CPUS 4096	 // that -C can name
#define CALL_BITS 576	 // numbers of each ABI that --syscall can name
#define X32_BIT (1U << 30)
#define MAX_ERRNO 4095

enum mode {
	MODE_TOTAL = 0,
	MODE_THREAD = 1,
	MODE_PROCESS = 2,
	MODE_CGROUP = 3,
};

// What becomes of a task's calls. It is decided at the first of them, out of the way of the others.
enum verdict {
	UNDECIDED = 0,
	ADOPTED = 1, // as UNDECIDED, but wanted for the sake of its parent
	WANTED = 2,
	UNWANTED = 3,
	AWAITED = 4, // the command, until its execve succeeds
};

enum abi {
	ABI_NATIVE = 0,
	ABI_COMPAT = 1, // 32-bit
};

// What is known of a task. Times are nanoseconds of CLOCK_MONOTONIC.
struct task_state {
	u64 start_ns; // when the call that is open was entered; 0: none is
	u64 group;    // whose row it counts in: the id, and in the upper half when that one began
	u64 task;     // whose state it is, as addresses; in `running` only, where 0 is nobody's
	u64 regs;
	u32 tgid; // in the pid namespace of who asks, once it is decided
	u32 tid;
	u32 nr;
	u8 abi;
	u8 verdict;
	u8 newborn; // it has yet to return from the call that made it
	u8 changed; // in `running`: there is more than `tasks` knows
};

struct row_key {
	u64 group;
	u32 nr;
	u16 cpu; // 0 where a group is a thread, which is its row's only writer
	u8 abi;
	u8 epoch;
};

struct error_key {
	struct row_key row;
	u32 errno_value;
	u32 pad;
};

struct statistics {
	u64 calls;
	u64 errors;
	u64 total_ns;
	u64 min_ns;
	u64 max_ns;
	u64 squares_low; // sum of squared nanoseconds, 128 bits
	u64 squares_high;
};

struct histogram {
	u64 buckets[BUCKETS];
};

struct name {
	char comm[TASK_COMM_LEN];
};

// What the tables do not say, in calls except where it says tasks. Rarely written, so atomically.
struct losses {
	u64 open_at_start;     // open when the run began; seen to return
	u64 unpaired;	       // returns of calls that were never entered: seccomp refused them
	u64 exits;	       // exit and exit_group, which do not return
	u64 died;	       // the task died inside another call
	u64 unreturned;	       // calls whose return was not seen
	u64 tid_changed;       // execve by a thread that took over its process's number
	u64 states_full;	       // starts that found no place
	u64 rows_full;	       // calls that found no row
	u64 errors_full;       // failed calls that are counted, but not by errno
	u64 histograms_full;   // calls that are counted, but not in a histogram
	u64 names_full;	       // tasks without a place for their name
	u64 follow_full;       // new tasks that could not be followed
	u64 clock_backwards;   // calls that seem to end before they began: counted, with 0 ns
	u64 switches_missed;   // calls that are lost, as a switch to another task was not traced
	u64 outside_namespace; // tasks without a pid in our pid namespace
};

CONFIG u32 mode = MODE_TOTAL;
CONFIG bool task_storage = true;  // else `tasks_by_address` alone
CONFIG bool task_pt_regs = true;  // bpf_task_pt_regs() is there (Linux 5.15)
CONFIG bool histograms_wanted = false;
CONFIG bool errnos_wanted = false;
CONFIG bool has_filters = false; // any of the following
CONFIG bool only_failed = false;
CONFIG u32 only_errno = 0;	// only calls that failed with it
CONFIG bool has_cgroup = false; // only below the cgroup in `cgroup`
CONFIG bool has_uid = false;
CONFIG u32 uid = 0;
CONFIG bool has_cpus = false; // only calls that end on these
CONFIG u64 cpus[MAX_CPUS / 64] = {};
CONFIG bool has_calls = false;
CONFIG u64 calls[3][CALL_BITS / 64] = {}; // native, compat, x32
CONFIG bool has_tgids = false; // only the processes in `tgids`, and their children from now on
CONFIG bool has_tids = false;  // only the threads in `tids`
CONFIG u32 own_tgid = 0;		  // who is asking: left out
CONFIG u32 command_tgid = 0;		  // the command to run: from its execve on
CONFIG u32 compat_flag = 0;		  // the bit of thread_info that marks a 32-bit call
CONFIG int compat_offset = -1;		  // where in a task that is, for programs without BTF
CONFIG u32 exit_numbers[2][2] = {};	  // exit and exit_group, by ABI
CONFIG u64 pid_namespace_dev = 0;	  // the namespace to number tasks in; 0: the initial one
CONFIG u64 pid_namespace_ino = 0;
CONFIG u32 fork_child_offset = 0; // where the tracepoint sched_process_fork has child_pid

u32 phase = 0; // 0: off; else 1 + the epoch to write to
struct losses losses = {};

// The state of the task that runs on each CPU: sched_switch brings it and takes it away. To find
// the task and its storage at both ends of every call would cost a third more. Whose it is can be
// seen by where its registers are, at the top of its stack: a switch that was not traced shows.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct task_state);
} running SEC(".maps");

// The states of the others, and without BTF, of all.
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_state);
} tasks SEC(".maps");

// By the address of the task: it survives execve, which may change the thread's number.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, struct task_state);
} tasks_by_address SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, EPOCHS * 2 * SLOTS);
	__type(key, u32);
	__type(value, struct statistics);
} totals SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, EPOCHS * 2 * SLOTS);
	__type(key, u32);
	__type(value, struct histogram);
} total_histograms SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 131072);
	__type(key, struct row_key);
	__type(value, struct statistics);
} rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, struct row_key);
	__type(value, struct histogram);
} histograms SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct error_key);
	__type(value, u64);
} errors SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, u64);
	__type(value, struct name);
} names SEC(".maps");

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

// Without BTF a fork says only the number of the child: thread number -> verdict.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, u32);
	__type(value, u8);
} forked SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} cgroup SEC(".maps");

// The parts of the kernel's structs that are used here, found at load time by their names.
struct thread_info {
	unsigned long flags;
	u32 status;
} __attribute__((preserve_access_index));

struct upid {
	int nr;
} __attribute__((preserve_access_index));

struct pid {
	unsigned int level;
	struct upid numbers[1];
} __attribute__((preserve_access_index));

struct mm_struct;

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	int pid;
	int tgid;
	struct mm_struct *mm;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	u64 start_time;
	char comm[TASK_COMM_LEN];
} __attribute__((preserve_access_index));

struct task_struct___before_5_14 {
	long state;
} __attribute__((preserve_access_index));

struct pt_regs {
	long orig_ax; // x86
	long cx;
	long ip;
	long r11;
	long flags;
	int syscallno; // arm64
} __attribute__((preserve_access_index));

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} __attribute__((preserve_access_index));

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} __attribute__((preserve_access_index));

#define COUNT(field) __sync_fetch_and_add(&losses.field, 1)

static const struct statistics no_statistics;
static const struct histogram no_histogram;
static const struct task_state no_state;

// The state of a task that the task storage has no place for, or that there is no storage for.
static __noinline struct task_state *state_by_address(u64 address, bool create)
{
	struct task_state *state = bpf_map_lookup_elem(&tasks_by_address, &address);

	if (state || !create)
		return state;
	bpf_map_update_elem(&tasks_by_address, &address, &no_state, BPF_NOEXIST);
	return bpf_map_lookup_elem(&tasks_by_address, &address);
}

// The current task, with a type where there is task storage (which wants one).
static __always_inline struct task_struct *own_task(void)
{
	return task_storage ? bpf_get_current_task_btf() : (void *)bpf_get_current_task();
}

static __always_inline struct task_state *state_of(struct task_struct *task, bool create)
{
	struct task_state *state = NULL;

	if (task_storage)
		state = bpf_task_storage_get(&tasks, task, NULL,
					     create ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
	if (!state)
		state = state_by_address((u64)task, create);
	return state;
}

// Fetches the state of a task that came to this CPU; there may be none.
static __always_inline void fetch(struct task_state *now, struct task_struct *task)
{
	struct task_state *kept = state_of(task, false);

	if (!kept) {
		*now = no_state;
		return;
	}
	*now = *kept;
	kept->start_ns = 0; // so that it is open in one place
}

// Makes the state in `running` the current task's, where sched_switch did not.
static __noinline void claim(struct task_state *now, u64 regs)
{
	struct task_struct *task = own_task();

	if (now->task != (u64)task) {
		if (now->start_ns)
			COUNT(switches_missed);
		fetch(now, task);
		now->task = (u64)task;
	}
	if (regs && now->regs != regs) {
		now->regs = regs;
		now->changed = true;
	}
}

// The state of the current task. With `regs`, its registers, this is a few instructions.
static __always_inline struct task_state *own_state(u64 regs, bool create, bool btf)
{
	struct task_state *now;
	u32 zero = 0;

	if (!btf)
		return state_of(own_task(), create);
	now = bpf_map_lookup_elem(&running, &zero);
	if (now && (!regs || now->regs != regs))
		claim(now, regs);
	return now;
}

// Numbers the current task in the namespace that was asked for.
static __always_inline void own_numbers(struct task_state *state)
{
	struct bpf_pidns_info info = {};
	u64 both;

	if (pid_namespace_ino) {
		if (bpf_get_ns_current_pid_tgid(pid_namespace_dev, pid_namespace_ino, &info,
						sizeof(info)))
			COUNT(outside_namespace);
		state->tgid = info.tgid;
		state->tid = info.pid;
		return;
	}
	both = bpf_get_current_pid_tgid();
	state->tgid = both >> 32;
	state->tid = both;
}

// Tells apart two threads or processes that had the same number: when each began, in steps of
// about a millisecond. Numbers do not come round as fast as that.
static __always_inline u64 generation(bool btf)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	u64 began;

	if (!btf)
		return mode == MODE_THREAD ? bpf_ktime_get_ns() >> 20 << 32 : 0;
	if (mode == MODE_PROCESS)
		task = BPF_CORE_READ(task, group_leader);
	began = BPF_CORE_READ(task, start_time);
	return began >> 20 << 32;
}

static __always_inline void keep_name(u64 group, u64 flags)
{
	struct name name = {};
	int err; // before Linux 6.4 the upper half of what an inlined update returns is not set

	bpf_get_current_comm(&name.comm, sizeof(name.comm));
	err = bpf_map_update_elem(&names, &group, &name, flags);
	if (err && err != -EEXIST && err != -ENOENT)
		COUNT(names_full);
}

// Whose row the current task's calls count in. Its name is the leader's in mode process.
static __always_inline void join_group(struct task_state *state, bool btf)
{
	bool leads = state->tgid == state->tid;

	if (mode != MODE_THREAD && mode != MODE_PROCESS)
		return;
	state->group = generation(btf) | (mode == MODE_THREAD ? state->tid : state->tgid);
	keep_name(state->group, mode == MODE_THREAD || leads ? BPF_ANY : BPF_NOEXIST);
}

static __always_inline u8 judge(struct task_state *state)
{
	u32 tgid = state->tgid, tid = state->tid;

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

static __always_inline bool decided(struct task_state *state)
{
	return state->verdict >= WANTED;
}

// What the fork of this task left in `forked`, where it could not reach the state.
static __always_inline void inherit(struct task_state *state)
{
	u32 number = bpf_get_current_pid_tgid();
	u8 *verdict = bpf_map_lookup_elem(&forked, &number);

	if (!verdict)
		return;
	state->verdict = *verdict;
	state->newborn = true;
	bpf_map_delete_elem(&forked, &number);
}

static __noinline void decide(struct task_state *state, bool btf)
{
	if (decided(state))
		return;
	if (fork_child_offset)
		inherit(state);
	own_numbers(state);
	state->verdict = state->verdict == ADOPTED ? WANTED : judge(state);
	state->changed = true;
	if (state->verdict == WANTED)
		join_group(state, btf);
}

// Which instruction entered the kernel. SYSCALL leaves two marks in the registers of a 64-bit
// program, which nothing else does but a program that forges them. Where they are missing, a bit
// of thread_info tells a 32-bit call from a 64-bit one.
static __always_inline u8 abi_of(struct pt_regs *regs)
{
	struct task_struct *task;
	u64 word;

	if (bpf_core_field_exists(regs->cx) && regs->cx == regs->ip && regs->r11 == regs->flags)
		return ABI_NATIVE;
	task = (void *)bpf_get_current_task();
	if (bpf_core_field_exists(task->thread_info.status))
		word = BPF_CORE_READ(task, thread_info.status);
	else
		word = BPF_CORE_READ(task, thread_info.flags);
	return word & compat_flag ? ABI_COMPAT : ABI_NATIVE;
}

// The same where the registers are not known. Costs 30 ns.
static __always_inline u8 abi_of_task(void)
{
	u32 word = 0;

	if (compat_offset < 0)
		return ABI_NATIVE;
	bpf_probe_read_kernel(&word, sizeof(word), (void *)bpf_get_current_task() + compat_offset);
	return word & compat_flag ? ABI_COMPAT : ABI_NATIVE;
}

static __always_inline int enter(struct pt_regs *regs, long nr, bool btf)
{
	struct task_state *state;

	if (!phase)
		return 0;
	state = own_state((u64)regs, true, btf);
	if (!state) {
		COUNT(states_full);
		return 0;
	}
	if (state->verdict != WANTED) {
		if (!decided(state)) {
			decide(state, btf);
			state->newborn = false;
		}
		if (state->verdict == UNWANTED)
			return 0;
	}
	if (state->start_ns)
		COUNT(unreturned);
	state->nr = nr;
	state->abi = btf ? abi_of(regs) : abi_of_task();
	state->start_ns = bpf_ktime_get_ns();
	return 0;
}

static __always_inline bool call_wanted(u32 nr, u32 abi)
{
	u32 word;

	if (nr & X32_BIT) {
		abi = 2;
		nr &= ~X32_BIT;
	}
	word = nr / 64;
	if (word >= CALL_BITS / 64)
		return false;
	return calls[abi][word] >> (nr % 64) & 1;
}

static __always_inline bool return_wanted(struct task_state *state, u32 errno_value)
{
	if (only_failed && !errno_value)
		return false;
	if (only_errno && errno_value != only_errno)
		return false;
	if (has_calls && !call_wanted(state->nr, state->abi & 1))
		return false;
	if (has_cpus) {
		u32 cpu = bpf_get_smp_processor_id();

		if (cpu >= MAX_CPUS || !(cpus[cpu / 64] >> (cpu % 64) & 1))
			return false;
	}
	if (has_uid && (u32)bpf_get_current_uid_gid() != uid)
		return false;
	if (has_cgroup && bpf_current_task_under_cgroup(&cgroup, 0) != 1)
		return false;
	return true;
}

// Adds x * x, of which the lower half is exact in 64 bits as long as x is below 2^32 (4.3 s).
static __always_inline void add_square(struct statistics *row, u64 x)
{
	u64 low = x * x;

	if (x >> 32) {
		u64 upper = x >> 32, lower = (u32)x, cross = upper * lower;

		row->squares_high += upper * upper + (cross >> 31) + (low < lower * lower);
	}
	row->squares_low += low;
	if (row->squares_low < low)
		row->squares_high++;
}

static __always_inline void add(struct statistics *row, u64 elapsed_ns, bool failed)
{
	if (!row->calls || elapsed_ns < row->min_ns)
		row->min_ns = elapsed_ns;
	if (elapsed_ns > row->max_ns)
		row->max_ns = elapsed_ns;
	row->calls++;
	if (failed)
		row->errors++;
	row->total_ns += elapsed_ns;
	add_square(row, elapsed_ns);
}

static __noinline void count_error(struct row_key *row, u32 errno_value)
{
	struct error_key key = {.row = *row, .errno_value = errno_value};
	u64 first = 1, *found = bpf_map_lookup_elem(&errors, &key);

	if (found)
		++*found;
	else if (bpf_map_update_elem(&errors, &key, &first, BPF_NOEXIST))
		COUNT(errors_full);
}

static __noinline void count_in_histogram(struct row_key *row, u64 elapsed_ns)
{
	struct histogram *found = bpf_map_lookup_elem(&histograms, row);

	if (!found) {
		bpf_map_update_elem(&histograms, row, &no_histogram, BPF_NOEXIST);
		found = bpf_map_lookup_elem(&histograms, row);
	}
	if (found)
		add_to_buckets(found->buckets, elapsed_ns);
	else
		COUNT(histograms_full);
}

// Counts in a row of its own: any group, and numbers that `totals` has no place for.
static __always_inline void count_in_row(struct row_key *key, u64 elapsed_ns, u32 errno_value)
{
	struct statistics *row = bpf_map_lookup_elem(&rows, key);

	if (!row) {
		bpf_map_update_elem(&rows, key, &no_statistics, BPF_NOEXIST);
		row = bpf_map_lookup_elem(&rows, key);
		if (!row) {
			COUNT(rows_full);
			return;
		}
	}
	add(row, elapsed_ns, errno_value != 0);
	if (histograms_wanted)
		count_in_histogram(key, elapsed_ns);
}

static __always_inline void count_in_totals(u32 slot, u64 elapsed_ns, u32 errno_value)
{
	struct statistics *row = bpf_map_lookup_elem(&totals, &slot);
	struct histogram *histogram;

	if (!row)
		return; // not so: slot is below max_entries
	add(row, elapsed_ns, errno_value != 0);
	if (!histograms_wanted)
		return;
	histogram = bpf_map_lookup_elem(&total_histograms, &slot);
	if (histogram)
		add_to_buckets(histogram->buckets, elapsed_ns);
}

// The row that a call counts in, for the tables that are keyed by it.
static __always_inline struct row_key row_of(struct task_state *state, u32 mode, u32 epoch)
{
	struct row_key key = {.nr = state->nr, .abi = state->abi & 1, .epoch = epoch};

	if (mode == MODE_CGROUP)
		key.group = bpf_get_current_cgroup_id();
	else if (mode != MODE_TOTAL)
		key.group = state->group;
	if (mode != MODE_THREAD)
		key.cpu = bpf_get_smp_processor_id();
	return key;
}

static __always_inline void count(struct task_state *state, u32 epoch, u64 elapsed_ns,
				  u32 errno_value)
{
	u32 grouping = mode; // read once: each read of a constant is an instruction
	struct row_key key;

	if (grouping == MODE_TOTAL && state->nr < SLOTS) {
		count_in_totals((epoch * 2 + (state->abi & 1)) * SLOTS + state->nr, elapsed_ns,
				errno_value);
		if (!errnos_wanted || !errno_value)
			return;
		key = row_of(state, grouping, epoch);
	} else {
		key = row_of(state, grouping, epoch);
		count_in_row(&key, elapsed_ns, errno_value);
	}
	if (errnos_wanted && errno_value)
		count_error(&key, errno_value);
}

// A return without an entry: from the call that made this task, from one that was open when the
// run began, or from one that seccomp refused before its entry was traced.
static __noinline int unpaired(bool btf)
{
	struct task_state *state = own_state(0, true, btf);
	bool known;

	if (!state) {
		COUNT(states_full);
		return 0;
	}
	known = decided(state);
	decide(state, btf);
	if (state->verdict == WANTED && !state->newborn) {
		if (known)
			COUNT(unpaired);
		else
			COUNT(open_at_start);
	}
	state->newborn = false;
	state->changed = true;
	return 0;
}

static __always_inline int leave(u64 regs, s64 result, bool btf)
{
	u32 errno_value = (u64)result >= (u64)-MAX_ERRNO ? -result : 0;
	u32 running = phase;
	struct task_state *state;
	s64 elapsed_ns;

	if (!running)
		return 0;
	elapsed_ns = bpf_ktime_get_ns();
	state = own_state(regs, false, btf);
	if (!state || !state->start_ns) {
		if (!state || state->verdict != UNWANTED)
			unpaired(btf);
		return 0;
	}
	elapsed_ns -= state->start_ns;
	state->start_ns = 0;
	if (state->verdict != WANTED)
		return 0;
	if (has_filters && !return_wanted(state, errno_value))
		return 0;
	if (elapsed_ns < 0) {
		COUNT(clock_backwards);
		elapsed_ns = 0;
	}
	count(state, (running - 1) & 1, elapsed_ns, errno_value);
	return 0;
}

static __always_inline int execve(u32 old_tid, u32 tid, bool btf)
{
	struct task_state *state = own_state(0, false, btf);

	if (!phase || !state)
		return 0;
	if (state->verdict == AWAITED)
		state->verdict = WANTED; // its execve counts
	if (state->verdict != WANTED)
		return 0;
	if (old_tid != tid)
		COUNT(tid_changed);
	own_numbers(state);
	join_group(state, btf);
	state->changed = true;
	return 0;
}

static __always_inline void close_for_good(struct task_state *state)
{
	u32 abi = state->abi & 1, nr = state->nr & ~X32_BIT;

	if (state->start_ns && state->verdict == WANTED) {
		if (nr == exit_numbers[abi][0] || nr == exit_numbers[abi][1])
			COUNT(exits);
		else
			COUNT(died);
	}
	if (state->group && (mode == MODE_THREAD || state->tgid == state->tid))
		keep_name(state->group, BPF_EXIST); // it may have been renamed
	*state = no_state; // nothing to take away at the last switch
}

static __always_inline int task_exit(bool btf)
{
	struct task_state *state = own_state(0, false, btf);
	u64 address = bpf_get_current_task();

	if (phase && state)
		close_for_good(state);
	bpf_map_delete_elem(&tasks_by_address, &address);
	return 0;
}

// With -p and a command, a child is followed as its parent is.
static __always_inline u8 inherited(bool btf)
{
	struct task_state *parent;

	if (!has_tgids && !command_tgid)
		return UNDECIDED;
	parent = own_state(0, false, btf);
	if (!parent)
		return UNDECIDED;
	decide(parent, btf);
	return parent->verdict == WANTED ? ADOPTED : UNDECIDED;
}

SEC("?tp_btf/sys_enter")
int btf_sys_enter(u64 *ctx)
{
	return enter((void *)ctx[0], ctx[1], true);
}

SEC("?tp_btf/sys_exit")
int btf_sys_exit(u64 *ctx)
{
	return leave(ctx[0], ctx[1], true);
}

SEC("?tp_btf/sched_process_fork")
int btf_fork(u64 *ctx)
{
	struct task_struct *child = (void *)ctx[1];
	struct task_state *state;

	if (!phase)
		return 0;
	state = state_of(child, true);
	if (!state) {
		COUNT(follow_full);
		return 0;
	}
	state->verdict = inherited(true);
	state->newborn = true;
	return 0;
}

SEC("?tp_btf/sched_process_exec")
int btf_exec(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];

	return execve(ctx[1], task->pid, true);
}

SEC("?tp_btf/sched_process_exit")
int btf_exit(u64 *ctx)
{
	return task_exit(true);
}

SEC("?tp_btf/sched_switch")
int btf_switch(u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	struct task_state *now, *kept;
	u32 zero = 0;

	if (!phase)
		return 0;
	now = bpf_map_lookup_elem(&running, &zero);
	if (!now)
		return 0; // not so: there is one for each CPU
	if (now->task == (u64)prev && (now->start_ns || now->changed)) {
		now->changed = false;
		kept = state_of(prev, true);
		if (kept)
			*kept = *now;
		else
			COUNT(states_full);
	} else if (now->start_ns) {
		COUNT(switches_missed);
	}
	*now = no_state;
	if (next->mm)
		fetch(now, next);
	if (now->regs)
		now->task = (u64)next;
	return 0;
}

// Without BTF: the same from raw tracepoints, whose arguments need no types, or from tracepoints.

SEC("?raw_tp/sys_enter")
int raw_sys_enter(struct bpf_raw_tracepoint_args *ctx)
{
	return enter(NULL, ctx->args[1], false);
}

SEC("?raw_tp/sys_exit")
int raw_sys_exit(struct bpf_raw_tracepoint_args *ctx)
{
	return leave(0, ctx->args[1], false);
}

// What tracepoints pass behind their eight common bytes.
struct sys_enter_record {
	u64 common;
	long id;
};

struct sys_exit_record {
	u64 common;
	long id;
	long ret;
};

struct exec_record {
	u64 common;
	u32 filename;
	int pid;
	int old_pid;
};

SEC("?tracepoint/raw_syscalls/sys_enter")
int tp_sys_enter(struct sys_enter_record *ctx)
{
	return enter(NULL, ctx->id, false);
}

SEC("?tracepoint/raw_syscalls/sys_exit")
int tp_sys_exit(struct sys_exit_record *ctx)
{
	return leave(0, ctx->ret, false);
}

SEC("?tracepoint/sched/sched_process_fork")
int tp_fork(void *ctx)
{
	u32 child = 0;
	u8 verdict;

	if (!phase)
		return 0;
	verdict = inherited(false);
	bpf_probe_read_kernel(&child, sizeof(child), ctx + fork_child_offset);
	if (bpf_map_update_elem(&forked, &child, &verdict, BPF_ANY))
		COUNT(follow_full);
	return 0;
}

SEC("?tracepoint/sched/sched_process_exec")
int tp_exec(struct exec_record *ctx)
{
	return execve(ctx->old_pid, ctx->pid, false);
}

SEC("?tracepoint/sched/sched_process_exit")
int tp_exit(void *ctx)
{
	return task_exit(false);
}

// A call that was open at the end. With start_ns 0 it was open at the start already.
struct open_call {
	u64 start_ns;
	u32 tgid;
	u32 tid;
	u32 nr;
	u8 abi;
	u8 verdict;
	u8 pad[2];
	char comm[TASK_COMM_LEN];
};

struct open_call *anchor_open_call; // keeps the type in BTF

static __always_inline bool sleeps(struct task_struct *task)
{
	struct task_struct___before_5_14 *old = (void *)task;

	if (bpf_core_field_exists(task->__state))
		return BPF_CORE_READ(task, __state) != 0;
	return BPF_CORE_READ(old, state) != 0;
}

// The call that a task without a state sleeps in; -1: none.
static __always_inline long call_of_sleeper(struct task_struct *task)
{
	struct pt_regs *regs;

	if (!task_pt_regs || !task->mm || !sleeps(task))
		return -1;
	regs = (void *)bpf_task_pt_regs(task);
	if (bpf_core_field_exists(regs->orig_ax))
		return BPF_CORE_READ(regs, orig_ax);
	return BPF_CORE_READ(regs, syscallno);
}

static __always_inline u32 number_of(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	u32 level = BPF_CORE_READ(pid, level), number = 0;
	void *numbers = (void *)pid + bpf_core_field_offset(pid->numbers);

	bpf_probe_read_kernel(&number, sizeof(number),
			      numbers + level * bpf_core_type_size(struct upid));
	return number;
}

SEC("?iter/task")
int list_open_calls(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct task_state *state;
	struct open_call call = {};
	long nr;

	if (!task)
		return 0;
	state = state_of(task, false);
	if (state && state->start_ns) {
		call.start_ns = state->start_ns;
		call.nr = state->nr;
		call.abi = state->abi;
	} else {
		nr = state && decided(state) ? -1 : call_of_sleeper(task);
		if (nr < 0)
			return 0;
		call.nr = nr;
	}
	call.verdict = state ? state->verdict : UNDECIDED;
	call.tgid = task->tgid;
	call.tid = task->pid;
	if (pid_namespace_ino) {
		call.tid = number_of(task);
		call.tgid = number_of(task->group_leader);
	}
	BPF_CORE_READ_STR_INTO(&call.comm, task, comm);
	bpf_seq_write(ctx->meta->seq, &call, sizeof(call));
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
