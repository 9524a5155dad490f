// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Waits for locks of user space: threads that sleep in futex(2), on which lock, where, for how long,
// and who woke them. x86_64 only.
#define PLACES 4 // programs that are preempted at the same time: see take_place()
#include "comm.h"
#include "cpus.h"
#include "futex/records.h"
#include "map_entry.h"
#include "maximum.h"
#include "pid_namespace.h"
#include "places.h"
#include "targets.h"
#include "user_stacks.h"

static __always_inline struct stats *stats_here(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&stats, &zero);
}

#define COUNT(st, field) __sync_fetch_and_add(&(st)->field, 1)

static __always_inline u64 stack_here(void *ctx, u32 tgid, struct stats *st)
{
	u64 id = STACK_LOST;
	u32 place = take_place();

	if (place >= PLACES) {
		COUNT(st, places_taken);
		return id;
	}
	id = user_stack_by_ticket(ctx, place, tgid, false);
	give_back(place);
	return id;
}

// What the thread asks of futex(2), or of futex_wait(2) and futex_wake(2) of Linux 6.7.
static __always_inline enum request read_request(struct registers *registers, u64 number,
						 u64 *address)
{
	u64 cs = 0, operation = 0;

	if (number != CALL_FUTEX && number != CALL_FUTEX_WAIT && number != CALL_FUTEX_WAKE)
		return REQUEST_OTHER;
	if (bpf_probe_read_kernel(&cs, sizeof(cs), &registers->cs) || cs != USER_CS ||
	    bpf_probe_read_kernel(address, sizeof(*address), &registers->di))
		return REQUEST_OTHER;
	if (number == CALL_FUTEX_WAIT)
		return REQUEST_WAIT;
	if (number == CALL_FUTEX_WAKE)
		return REQUEST_WAKE;
	bpf_probe_read_kernel(&operation, sizeof(operation), &registers->si);
	switch (operation & FUTEX_COMMANDS) {
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
	case FUTEX_WAIT_REQUEUE_PI:
		return REQUEST_WAIT;
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
		return REQUEST_LOCK_PI;
	case FUTEX_WAKE:
	case FUTEX_REQUEUE:
	case FUTEX_CMP_REQUEUE:
	case FUTEX_WAKE_OP:
	case FUTEX_UNLOCK_PI:
	case FUTEX_WAKE_BITSET:
		return REQUEST_WAKE;
	}
	return REQUEST_OTHER;
}

// The thread that the words at a lock name as its owner, as its own pid namespace numbers it: glibc's
// pthread_mutex_t has it behind the lock and a count, and a lock with priority inheritance is it.
// Other locks have other words there: user space knows by the stack which it is.
static __always_inline u32 read_owner(u64 address, enum request request)
{
	u32 words[3] = {};

	if (bpf_probe_read_user(words, sizeof(words), (void *)address))
		return 0;
	if (request == REQUEST_LOCK_PI)
		return words[0] & FUTEX_TID_MASK;
	return words[2] <= MOST_TIDS ? words[2] : 0;
}

static __always_inline bool wanted(struct row_key *key, struct stats *st)
{
	bool numbered = own_numbers(bpf_get_current_pid_tgid(), true, &key->tgid, &key->tid);

	if ((own_tgid && key->tgid == own_tgid) || !listed(key->tgid, key->tid) ||
	    !cpu_wanted(bpf_get_smp_processor_id()) || !in_scope())
		return false;
	if (!numbered)
		COUNT(st, outside_namespace);
	return true;
}

static const struct lock no_lock;

static __always_inline struct lock *lock_at(u64 address, bool make)
{
	struct lock_key key = {
		.address = address,
		.process = bpf_get_current_pid_tgid() >> 32,
	};

	if (!make)
		return bpf_map_lookup_elem(&locks, &key);
	return find_or_add(&locks, &key, &no_lock);
}

static __always_inline void begin_wait(void *ctx, u64 address, enum request request)
{
	u64 thread = bpf_get_current_pid_tgid();
	struct stats *st = stats_here();
	struct wait wait = {};
	struct lock *lock;

	if (!st || !wanted(&wait.key, st))
		return;
	wait.key.address = address;
	wait.key.owner = read_owner(address, request);
	wait.key.stack = stack_here(ctx, wait.key.tgid, st);
	if (with_cgroups)
		wait.key.cgroup = bpf_get_current_cgroup_id();
	read_comm(&wait.comm);
	lock = lock_at(address, true);
	if (lock) {
		wait.position = __sync_fetch_and_add(&lock->waiting, 1) + 1;
	} else {
		COUNT(st, locks_full);
	}
	wait.since_ns = bpf_ktime_get_ns();
	if (bpf_map_update_elem(&waits, &thread, &wait, BPF_ANY)) {
		COUNT(st, waits_full);
		if (lock)
			__sync_fetch_and_sub(&lock->waiting, 1);
	}
}

// Who lets go of a lock that others wait for.
static __always_inline void wake(void *ctx, u64 address)
{
	struct lock *lock = lock_at(address, false);
	struct stats *st = stats_here();
	u32 tgid, tid;

	if (!lock || !lock->waiting || !st)
		return;
	if (with_wakers) {
		own_numbers(bpf_get_current_pid_tgid(), true, &tgid, &tid);
		lock->waker_stack = stack_here(ctx, tgid, st);
	}
	lock->woken_ns = bpf_ktime_get_ns();
}

SEC("tp_btf/sys_enter")
int on_call(u64 *ctx)
{
	u64 address = 0;
	enum request request;

	if (!phase)
		return 0;
	request = read_request((void *)ctx[0], ctx[1], &address);
	if (request == REQUEST_WAIT || request == REQUEST_LOCK_PI)
		begin_wait(ctx, address, request);
	else if (request == REQUEST_WAKE)
		wake(ctx, address);
	return 0;
}

static const struct row no_row;

static __always_inline struct row *row_of(struct wait *wait, struct stats *st)
{
	struct row *row = bpf_map_lookup_elem(&rows, &wait->key);
	int err;

	if (row)
		return row;
	err = bpf_map_update_elem(&rows, &wait->key, &no_row, BPF_NOEXIST);
	row = bpf_map_lookup_elem(&rows, &wait->key); // another CPU may have been first
	if (row)
		__builtin_memcpy(row->comm, wait->comm, sizeof(row->comm));
	else if (err == -EBUSY)
		COUNT(st, rows_busy);
	else
		COUNT(st, rows_full);
	return row;
}

static __always_inline void send(struct wait *wait, u64 now_ns, u64 waker_stack, u64 woken_ns,
				 struct stats *st)
{
	struct slow_wait slow = {
		.time_ns = now_ns,
		.took_ns = now_ns - wait->since_ns,
		.key = wait->key,
		.waker_stack = waker_stack,
		.wake_ns = woken_ns ? now_ns - woken_ns : 0,
	};

	__builtin_memcpy(slow.comm, wait->comm, sizeof(slow.comm));
	if (bpf_ringbuf_output(&slow_waits, &slow, sizeof(slow), 0))
		COUNT(st, events_full);
}

static __always_inline void end_wait(struct wait *wait, u64 now_ns, s64 result, struct stats *st)
{
	u64 took_ns = now_ns - wait->since_ns;
	struct lock *lock = lock_at(wait->key.address, false);
	u32 bucket = bucket_of(took_ns);
	u64 woken_ns = 0, waker_stack = STACK_NONE;
	struct row *row;
	u32 others = 0;

	if (lock && wait->position) {
		others = __sync_fetch_and_sub(&lock->waiting, 1) - 1;
		woken_ns = lock->woken_ns;
		waker_stack = lock->waker_stack;
	}
	if (result == -EAGAIN) { // the lock was free by then: the thread did not sleep
		COUNT(st, retries);
		return;
	}
	COUNT(st, waits);
	if (woken_ns <= wait->since_ns || woken_ns >= now_ns) {
		woken_ns = 0;
		waker_stack = STACK_NONE;
	}
	if (took_ns >= slower_ns)
		send(wait, now_ns, waker_stack, woken_ns, st);
	if (!by_thread)
		wait->key.tid = 0;
	if (!by_owner)
		wait->key.owner = 0;
	row = row_of(wait, st);
	if (!row)
		return;
	__sync_fetch_and_add(&row->waits, 1);
	__sync_fetch_and_add(&row->total_ns, took_ns);
	raise_to(&row->max_ns, took_ns);
	if (result == -ETIMEDOUT)
		__sync_fetch_and_add(&row->timeouts, 1);
	if (!result && others)
		__sync_fetch_and_add(&row->handed_on, 1);
	if (woken_ns) {
		__sync_fetch_and_add(&row->woken, 1);
		__sync_fetch_and_add(&row->wake_ns, now_ns - woken_ns);
		if (with_wakers)
			row->waker_stack = waker_stack;
	}
	if (wait->position > row->most_waiting) // two CPUs may set it at once, to nearly the same
		row->most_waiting = wait->position;
	OPAQUE(bucket);
	if (bucket < BUCKETS)
		__sync_fetch_and_add(&row->buckets[bucket], 1);
}

SEC("tp_btf/sys_exit")
int on_call_end(u64 *ctx)
{
	u64 now_ns = bpf_ktime_get_ns(), thread = bpf_get_current_pid_tgid();
	struct wait *found = bpf_map_lookup_elem(&waits, &thread);
	struct stats *st = stats_here();
	struct wait wait;

	if (!found || !st)
		return 0;
	wait = *found;
	bpf_map_delete_elem(&waits, &thread);
	end_wait(&wait, now_ns, ctx[1], st);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
