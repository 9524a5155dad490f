// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Each sample with the user registers of its task, sent to user space; the kernel appends the top
// of the user stack, as the event in `copies` asks for it (PERF_SAMPLE_STACK_USER). x86_64 only.
#include "copy_budget.h"
#include "pid_namespace.h"
#include "targets.h"
#include "user_registers.h"

struct stack_copy {
	u64 time_ns; // CLOCK_MONOTONIC
	u32 cpu;
	u32 tgid;
	u32 tid;
	u32 is_compat; // a 32-bit task
	struct registers registers;
	char comm[TASK_COMM_LEN];
};

struct stats {
	u64 seen;	       // the program ran
	u64 others;	       // of tasks that were not asked for
	u64 outside_namespace; // no pid in our pid namespace
	u64 no_registers;      // a task of the kernel, or its registers could not be read
	u64 sent;
	u64 refused;	   // the budget of copies was spent
	u64 output_full;   // the ring of the CPU had no room
	u64 output_none;   // the CPU has no ring: it came online later
	u64 output_failed;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} copies SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stats);
} stats SEC(".maps");

struct stack_copy *copies_record; // the type of what `copies` carries

static __always_inline int copy(struct registers *ctx, bool typed)
{
	u64 now_ns = bpf_ktime_get_ns(), both = bpf_get_current_pid_tgid();
	struct stack_copy record = {};
	u32 zero = 0;
	struct stats *st = bpf_map_lookup_elem(&stats, &zero);
	long err;

	if (!st)
		return 0;
	st->seen++;
	if (!own_numbers(both, typed, &record.tgid, &record.tid)) {
		st->outside_namespace++;
		return 0;
	}
	if (!both || !listed(record.tgid, record.tid) || !in_cgroup()) {
		st->others++;
		return 0;
	}
	if (!user_registers(ctx, &record.registers)) {
		st->no_registers++;
		return 0;
	}
	if (!may_copy(now_ns)) {
		st->refused++;
		return 0;
	}
	record.time_ns = now_ns;
	record.cpu = bpf_get_smp_processor_id();
	record.is_compat = record.registers.cs != USER_CS;
	bpf_get_current_comm(record.comm, sizeof(record.comm));
	err = bpf_perf_event_output(ctx, &copies, BPF_F_CURRENT_CPU, &record, sizeof(record));
	if (!err)
		st->sent++;
	else if (err == -ENOSPC)
		st->output_full++;
	else if (err == -ENOENT)
		st->output_none++;
	else
		st->output_failed++;
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
