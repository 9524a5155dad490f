// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Runs a user's own program on samples: after a filter of ours, and before a program of ours.
#include "purebpf.h"
#include <linux/bpf_perf_event.h>

// Slots of `steps`. An empty one is skipped.
enum step {
	STEP_FILTER, // 0 ends the sample
	STEP_OWN,    // likewise
	STEP_REST,   // does the remaining work
	STEPS,
};

struct stats {
	u64 asked;   // the user's program saw the sample
	u64 dropped; // and returned 0
};

// Neither the compiler nor the verifier may know it: they believe that a subprogram returns here.
volatile u32 kept = 1;

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, STEPS);
	__type(key, u32);
	__type(value, u32);
} steps SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stats);
} stats SEC(".maps");

// A tail call of a subprogram replaces only the subprogram, so the other program's result comes back
// to the caller. Commit e411901c0b77 (Linux 5.10, x86-64), d4609a5d8c70 (6.0, arm64).
static __noinline int passes_filter(struct bpf_perf_event_data *ctx)
{
	bpf_tail_call(ctx, &steps, STEP_FILTER);
	return kept;
}

static __noinline int passes_own(struct bpf_perf_event_data *ctx)
{
	bpf_tail_call(ctx, &steps, STEP_OWN);
	return kept;
}

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	u32 zero = 0;
	struct stats *st = bpf_map_lookup_elem(&stats, &zero);

	if (!st || !passes_filter(ctx))
		return 0;
	st->asked++;
	if (!passes_own(ctx)) {
		st->dropped++;
		return 0;
	}
	bpf_tail_call(ctx, &steps, STEP_REST);
	return 1;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
