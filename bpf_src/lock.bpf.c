// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Waits for locks of the kernel: which lock, who waits and where, and who holds it.
//
// The tracepoints of contention (Linux 5.19, commit 16edd9b511a1) frame a wait. A task that spins
// keeps its CPU: such waits nest as interrupts do, and are kept in a stack of their CPU. Waits that
// may sleep are kept by thread. A wait is timed from when the program is done with its beginning
// until its end: what the program does is no part of it.
#include "events.h"
#include "histogram.h"
#include "lock/owner.h"
#include "map_entry.h"
#include "maximum.h"
#include "nesting.h"
#include "stacks.h"

enum grouping {
	BY_CALLER = 0,
	BY_LOCK = 1,
	BY_PROCESS = 2,
	BY_THREAD = 3,
	BY_OWNER = 4,
	BY_CGROUP = 5,
};

enum flag { // LCB_F_* of include/trace/events/lock.h
	SPINS = 1,
	READS = 2,
	WRITES = 4,
	IS_RT = 8,
	IS_PER_CPU = 16,
	IS_MUTEX = 32,
};

// A lock that is known by whose it is.
enum lock_name {
	BY_ADDRESS = 0,
	MMAP_LOCK = 1, // of the process that waits
	SIGLOCK = 2,   // of the process that waits
};

struct wait {
	u64 since_ns; // 0: it is none
	u64 lock;
	u64 stack;
	u64 owner_stack; // STACK_NONE: not known
	u64 cgroup;
	u32 flags;
	u32 name;
	u32 tgid; // in the pid namespace of who asks
	u32 tid;
	u32 owner_tgid; // 0: not known
	u32 owner_tid;
	char comm[TASK_COMM_LEN];
	char owner_comm[TASK_COMM_LEN];
};

struct row_key {
	u64 id; // what is grouped by
	u32 flags;
	u32 name;
};

// Many CPUs end waits: they add atomically.
struct row {
	u64 waits;
	u64 total_ns;
	u64 max_ns;
	u64 buckets[BUCKETS]; // of nanoseconds
	u64 stack;
	u64 owner_stack;	  // the last that was seen
	char comm[TASK_COMM_LEN]; // of a task that waited, or of the owner by which it is grouped
	struct slab_place slab;	  // by lock
};

struct lock_event {
	struct event head; // of the task that waited; the time is that of its end
	u64 took_ns;
	u64 lock;
	u64 stack;
	u64 owner_stack;
	u32 flags;
	u32 name;
	u32 owner_tgid;
	u32 owner_tid;
	struct slab_place slab;
	char owner_comm[TASK_COMM_LEN];
};

struct losses {
	u64 waits_full;	       // waits that found no place
	u64 rows_full;	       // waits that found no row
	u64 ends_missed;       // waits of which the end was not seen
	u64 outside_namespace; // waits of tasks without a number in our pid namespace
};

CONFIG u32 grouping = BY_CALLER;
CONFIG u64 slower_ns = ~0ULL; // waits that took so long are sent one by one
CONFIG bool with_stacks = false;
CONFIG bool with_owner_stacks = false;
CONFIG u64 wanted_types = ~0ULL; // a bit for each value of flags

struct losses losses = {};
struct lock_event *anchor_lock_event; // keeps the type in BTF
struct wait *anchor_wait;

#define COUNT(field) __sync_fetch_and_add(&losses.field, 1)

struct spins {
	struct nesting locks;
	struct wait waits[DEPTH];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct spins);
} spinning SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u32); // a thread, as the kernel numbers it
	__type(value, struct wait);
} sleeping SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct row_key);
	__type(value, struct row);
} rows SEC(".maps");

struct room {
	struct wait wait;
	struct lock_event event;
};

// What the programs build. The kernel does not run one inside itself (Linux 6.1, commit
// 05b24ff9b2cf), but the other.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct room);
} rooms SEC(".maps");

// The run queue of each CPU, which its locks are in: kallsyms may not have the kernel's variables.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} run_queues SEC(".maps");

static const struct row no_row;

static __always_inline bool stays_on_cpu(u32 flags)
{
	return (flags & SPINS) && !(flags & IS_MUTEX);
}

// Everything of a wait but when it began. False: it is not asked for.
static __always_inline bool describe(struct wait *wait, void *ctx, u64 lock, u32 flags)
{
	struct task_struct *owner;

	__builtin_memset(wait, 0, sizeof(*wait));
	wait->flags = flags & IS_MUTEX ? IS_MUTEX : flags; // a mutex is spun for, then slept for
	if (!(wanted_types >> (wait->flags & 63) & 1) || !own_task_wanted(&wait->tgid, &wait->tid))
		return false;
	if (!wait->tid && bpf_get_current_pid_tgid())
		COUNT(outside_namespace);
	wait->lock = lock;
	wait->cgroup = bpf_get_current_cgroup_id();
	read_comm(&wait->comm);
	if (is_own_mmap_lock(lock))
		wait->name = MMAP_LOCK;
	else if (is_own_siglock(lock))
		wait->name = SIGLOCK;
	owner = owner_of(lock, wait->flags);
	name_owner(owner, &wait->owner_tgid, &wait->owner_tid, &wait->owner_comm);
	if (with_owner_stacks)
		wait->owner_stack = owner_stack(owner);
	wait->stack = with_stacks ? walk(ctx, 0, KERNEL_BIT) : STACK_NONE;
	return true;
}

static __always_inline void begin_spin(void *ctx, u64 lock, u32 flags)
{
	u32 zero = 0, place;
	struct spins *spins = bpf_map_lookup_elem(&spinning, &zero);
	struct wait *wait;

	if (!spins)
		return;
	if (grouping == BY_LOCK) {
		u64 queue = own_run_queue();

		bpf_map_update_elem(&run_queues, &zero, &queue, BPF_ANY);
	}
	place = next_place(&spins->locks, &losses.ends_missed);
	wait = &spins->waits[place];
	if (!describe(wait, ctx, lock, flags))
		return;
	enter_object(&spins->locks, place, lock);
	wait->since_ns = bpf_ktime_get_ns();
}

static __always_inline void begin_sleep(void *ctx, u64 lock, u32 flags)
{
	u32 zero = 0, tid = bpf_get_current_pid_tgid();
	struct room *room = bpf_map_lookup_elem(&rooms, &zero);
	struct wait *wait = bpf_map_lookup_elem(&sleeping, &tid);

	if (wait && wait->lock == lock) { // the same wait: it has stopped to spin
		// The owner ran until now, and may sleep from here on.
		if (with_owner_stacks && !wait->owner_stack)
			wait->owner_stack = owner_stack(owner_of(lock, wait->flags));
		return;
	}
	if (wait)
		COUNT(ends_missed);
	if (!room || !describe(&room->wait, ctx, lock, flags))
		return;
	room->wait.since_ns = bpf_ktime_get_ns();
	if (bpf_map_update_elem(&sleeping, &tid, &room->wait, BPF_ANY))
		COUNT(waits_full);
}

SEC("tp_btf/contention_begin")
int on_begin(u64 *ctx)
{
	u32 flags = ctx[1];

	if (stays_on_cpu(flags))
		begin_spin(ctx, ctx[0], flags);
	else
		begin_sleep(ctx, ctx[0], flags);
	return 0;
}

static __always_inline void add(struct wait *wait, u64 took_ns)
{
	struct row_key key = {.flags = wait->flags, .name = wait->name};
	u32 bucket = bucket_of(took_ns);
	struct row *row;
	bool is_new;

	if (grouping == BY_CALLER) {
		key.id = wait->stack;
		key.name = BY_ADDRESS;
	} else if (grouping == BY_LOCK) {
		key.id = wait->name == BY_ADDRESS ? wait->lock : wait->tgid;
	} else {
		key.name = BY_ADDRESS;
		key.flags = 0;
		if (grouping == BY_PROCESS)
			key.id = wait->tgid;
		else if (grouping == BY_THREAD)
			key.id = (u64)wait->tgid << 32 | wait->tid;
		else if (grouping == BY_OWNER)
			key.id = (u64)wait->owner_tgid << 32 | wait->owner_tid;
		else
			key.id = wait->cgroup;
	}
	row = find_or_add_entry(&rows, &key, &no_row, &is_new);
	if (!row) {
		COUNT(rows_full);
		return;
	}
	if (is_new) {
		row->stack = wait->stack;
		if (grouping == BY_LOCK)
			read_slab(wait->lock, &row->slab);
		if (grouping == BY_OWNER)
			__builtin_memcpy(row->comm, wait->owner_comm, sizeof(row->comm));
		else
			__builtin_memcpy(row->comm, wait->comm, sizeof(row->comm));
	}
	if (with_owner_stacks && wait->owner_stack >= FIRST_STACK)
		row->owner_stack = wait->owner_stack;
	__sync_fetch_and_add(&row->waits, 1);
	__sync_fetch_and_add(&row->total_ns, took_ns);
	raise_to(&row->max_ns, took_ns);
	OPAQUE(bucket);
	if (bucket < BUCKETS)
		__sync_fetch_and_add(&row->buckets[bucket], 1);
}

static __always_inline void send(struct wait *wait, u64 now_ns, u64 took_ns)
{
	u32 zero = 0;
	struct room *room = bpf_map_lookup_elem(&rooms, &zero);
	struct lock_event *event;

	if (!room)
		return;
	event = &room->event;
	begin_event(&event->head, 0, wait->tgid, wait->tid);
	event->head.time_ns = now_ns;
	event->took_ns = took_ns;
	event->lock = wait->lock;
	event->stack = wait->stack;
	event->owner_stack = wait->owner_stack;
	__builtin_memset(&event->slab, 0, sizeof(event->slab));
	read_slab(wait->lock, &event->slab);
	event->flags = wait->flags;
	event->name = wait->name;
	event->owner_tgid = wait->owner_tgid;
	event->owner_tid = wait->owner_tid;
	__builtin_memcpy(event->owner_comm, wait->owner_comm, sizeof(event->owner_comm));
	send_event(event, sizeof(*event));
}

SEC("tp_btf/contention_end")
int on_end(u64 *ctx)
{
	u64 now_ns = bpf_ktime_get_ns(), lock = ctx[0], took_ns;
	u32 tid = bpf_get_current_pid_tgid();
	struct wait *wait;
	u32 zero = 0, place;
	struct spins *spins = bpf_map_lookup_elem(&spinning, &zero);

	if (!spins)
		return 0;
	place = leave_object(&spins->locks, lock, &losses.ends_missed);
	OPAQUE(place);
	if (place < DEPTH) {
		wait = &spins->waits[place];
	} else {
		wait = bpf_map_lookup_elem(&sleeping, &tid);
		if (!wait || wait->lock != lock)
			return 0; // it began before the run, or is not asked for
	}
	took_ns = now_ns - wait->since_ns;
	add(wait, took_ns);
	if (took_ns >= slower_ns)
		send(wait, now_ns, took_ns);
	if (place >= DEPTH)
		bpf_map_delete_elem(&sleeping, &tid);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
