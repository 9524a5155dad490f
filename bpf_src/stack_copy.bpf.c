// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Each sample with the user registers of its task, sent to user space; the kernel appends the top
// of the user stack, as the event in `copies` asks for it (PERF_SAMPLE_STACK_USER). x86_64 only.
#include "pid_namespace.h"
#include "targets.h"

#define SECOND_NS 1000000000ull

// struct pt_regs of x86_64 (arch/x86/include/asm/ptrace.h), with which the context of a
// perf_event program begins.
struct registers {
	u64 r15, r14, r13, r12, bp, bx;
	u64 r11, r10, r9, r8, ax, cx, dx, si, di;
	u64 orig_ax, ip, cs, flags, sp, ss;
};

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

// Time is credit: a copy costs 1 / copies_per_second of a second, at most a second is saved up.
struct budget {
	u64 credit_ns;
	u64 last_ns;
};

CONFIG u32 copies_per_second = 200; // on each CPU; 0: no bound

#define USER_CS 0x33 // arch/x86/include/asm/segment.h: __USER_CS, of 64-bit code

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} copies SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct budget);
} budgets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stats);
} stats SEC(".maps");

struct stack_copy *copies_record; // the type of what `copies` carries

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

static __always_inline bool read_registers(struct registers *ctx, struct registers *to)
{
	struct task_struct *task = bpf_get_current_task_btf();
	void *user;

	if ((ctx->cs & 3) == 3) {
		__builtin_memcpy(to, ctx, sizeof(*to));
		return true;
	}
	if (BPF_CORE_READ(task, flags) & PF_KTHREAD)
		return false;
	// Linux 5.15 (dd6e10fbd9fb): before, an offset from the end of the stack, which moved since.
	user = (void *)bpf_task_pt_regs(task);
	return user && !bpf_probe_read_kernel(to, sizeof(*to), user) && (to->cs & 3) == 3;
}

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
	if (!read_registers(ctx, &record.registers)) {
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
