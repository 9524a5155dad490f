// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Stacks of the calls and tracepoints that bpf_src/trace.bpf.c traces. At a call it has run before at the
// same tracepoint, and shares what it keeps of the call; at a tracepoint it jumps here and is jumped
// back to. An object of its own, as most traces are without stacks.
#define PLACES 4 // programs that are preempted at the same time: see take_place()
#include "trace/records.h"
#include "places.h"
#include "user_stacks.h"

// Programs may be preempted, so that every field is added to atomically.
struct stats {
	u64 stacks;
	u64 places_taken; // more programs than PLACES were preempted: the stack is missing
};

bool phase = false; // on

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stats);
} stats SEC(".maps");

SEC("?tp_btf/sys_enter")
int stack_call(u64 *ctx)
{
	struct task_state *state;
	u32 zero = 0, place;
	struct stats *st;

	if (!phase)
		return 0;
	state = state_of(own_task(), false);
	st = bpf_map_lookup_elem(&stats, &zero);
	if (!state || state->call.open != OPEN || !st)
		return 0;
	read_comm(&state->call.caller);
	__sync_fetch_and_add(&st->stacks, 1);
	place = take_place();
	if (place >= PLACES) {
		__sync_fetch_and_add(&st->places_taken, 1);
		state->call.stack = STACK_LOST;
		return 0;
	}
	state->call.stack = user_stack_by_ticket(ctx, place, state->call.event.tgid, false);
	give_back(place);
	return 0;
}

SEC("?tracepoint")
int stack_point(void *ctx)
{
	struct point_state *state;
	u32 zero = 0, place;
	struct stats *st;

	state = bpf_map_lookup_elem(&points, &zero);
	st = bpf_map_lookup_elem(&stats, &zero);
	if (!phase || !state || !st)
		return SEEN_BY_PERF; // the run has ended
	__sync_fetch_and_add(&st->stacks, 1);
	place = take_place();
	if (place < PLACES) {
		state->point.kernel_stack = kernel_stack_of(ctx, place);
		state->point.stack =
			user_stack_by_ticket(ctx, place, state->point.event.tgid, false);
		give_back(place);
	} else {
		__sync_fetch_and_add(&st->places_taken, 1);
		state->point.kernel_stack = STACK_LOST;
		state->point.stack = STACK_LOST;
	}
	bpf_tail_call(ctx, &then_point, POINT_SENT);
	return SEEN_BY_PERF;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
