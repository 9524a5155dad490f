// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// How many stacks a CPU may copy.
#ifndef COPY_BUDGET_H
#define COPY_BUDGET_H

#include "purebpf.h"

#define SECOND_NS 1000000000ull

CONFIG u32 copies_per_second = 200; // on each CPU; 0: no bound

// Time is credit: a copy costs 1 / copies_per_second of a second, at most a second is saved up.
struct budget {
	u64 credit_ns;
	u64 last_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct budget);
} budgets SEC(".maps");

// Written by the CPU it belongs to, with interrupts of one kind: a nested sample (NMI) may take a
// copy too many or too few.
static __always_inline bool may_copy(u64 now_ns)
{
	u32 zero = 0;
	struct budget *budget = bpf_map_lookup_elem(&budgets, &zero);
	u64 cost_ns, credit_ns;

	if (!copies_per_second)
		return true;
	if (!budget)
		return false;
	cost_ns = SECOND_NS / copies_per_second;
	credit_ns = budget->last_ns ? budget->credit_ns + now_ns - budget->last_ns : SECOND_NS;
	if (credit_ns > SECOND_NS)
		credit_ns = SECOND_NS;
	budget->last_ns = now_ns;
	budget->credit_ns = credit_ns < cost_ns ? credit_ns : credit_ns - cost_ns;
	return credit_ns >= cost_ns;
}

#endif
