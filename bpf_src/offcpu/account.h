// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Where a time goes: to the ring if it is long, else to the sums.
#ifndef OFFCPU_ACCOUNT_H
#define OFFCPU_ACCOUNT_H

#include "map_entry.h"
#include "records.h"

CONFIG bool split = false; // tell blocked from runnable: wake-ups are traced
CONFIG u32 states = ~1U;   // those asked for: 1 << enum state
CONFIG u64 threshold_ns = ~0ULL;
CONFIG u64 min_ns = 0;
CONFIG u64 max_ns = ~0ULL;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 40960);
	__type(key, struct sum_key);
	__type(value, struct sum);
} sums SEC(".maps");

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

static const struct sum no_sum;

static __always_inline struct stats *stats_of(u32 place)
{
	return bpf_map_lookup_elem(&stats, &place);
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
	struct sum *sum = find_or_add(&sums, key, &no_sum);

	if (!sum) {
		st->sums_full++;
		return;
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
	state->key.holder = 0;
	state->key.user_stack = STACK_NONE;
	state->key.kernel_stack = STACK_NONE;
	if (states >> state->pending_state & 1)
		account(&state->key, state->since_ns - state->pending_ns, state->since_ns,
			state->pending_waking_ns, state->cpu);
	state->pending_ns = 0;
	no_waker(&state->key);
}

#endif
