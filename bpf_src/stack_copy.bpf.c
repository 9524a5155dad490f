// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Each sample with the user registers of its task, sent to user space; the kernel appends the top
// of the user stack, as the event in `copies` asks for it (PERF_SAMPLE_STACK_USER).
#include "copied_sample.h"

struct stats {
	u64 seen;	       // the program ran
	u64 others;	       // of tasks that were not asked for
	u64 outside_namespace; // no pid in our pid namespace
	u64 no_registers;      // it has no user stack, or its registers could not be read
	u64 sent;
	u64 refused;	 // the budget of copies was spent
	u64 output_full; // the ring of the CPU had no room
	u64 output_none; // the CPU has no ring: it came online later
	u64 output_failed;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stats);
} stats SEC(".maps");

struct stack_copy *copies_record; // the type of what `copies` carries

static __always_inline int copy(struct registers *ctx, bool typed)
{
	struct stack_copy record = {};
	u32 zero = 0;
	struct stats *st = bpf_map_lookup_elem(&stats, &zero);

	if (!st)
		return 0;
	st->seen++;
	if (!take_sample(ctx, typed, &record, &st->others, &st->outside_namespace,
			 &st->no_registers))
		return 0;
	if (!may_copy(record.time_ns)) {
		st->refused++;
		return 0;
	}
	output_copy(ctx, &record, sizeof(record), &st->sent, &st->output_full, &st->output_none,
		    &st->output_failed);
	return 0;
}

SEC("perf_event")
int copy_stack(struct registers *ctx)
{
	return copy(ctx, false);
}

// The same, from within a pid namespace: needs the kernel's BTF.
SEC("?perf_event")
int copy_stack_typed(struct registers *ctx)
{
	return copy(ctx, true);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
