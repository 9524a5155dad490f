// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The time of each CPU: of interrupt handlers, softirqs, each task, and idle. Each nanosecond counts
// once: for the handler that runs, else for the softirq, else for the task.
#include "cpus.h"
#include "task.h"

struct cpu_time {
	u64 last_ns;	// everything before is counted
	u64 current_ns; // of the task that runs, not yet in `tasks`
	u64 tasks_ns;	// of all tasks but the idle one; with `current_ns`
	u64 idle_ns;
	u64 softirq_ns;
	u64 irq_ns;
	u64 tasks_full; // nanoseconds of tasks without a place in `tasks`
	u32 softirqs;	// 1: in a softirq
	u32 irqs;
	u32 tid; // the task that runs
	u32 tgid;
	char comm[TASK_COMM_LEN];
};

struct task_time {
	u64 ns;
	u32 tgid;
	u32 reserved;
	char comm[TASK_COMM_LEN];
};

u64 started_ns = 0; // CLOCK_MONOTONIC; 0: not yet

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cpu_time);
} cpu_times SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 10240);
	__type(key, u32);
	__type(value, struct task_time);
} tasks SEC(".maps");

// Counts the time up to now. NULL: this CPU is not measured.
static __always_inline struct cpu_time *count_time(void)
{
	u32 zero = 0;
	struct cpu_time *cpu;
	u64 now, elapsed;

	if (!started_ns || !cpu_wanted(bpf_get_smp_processor_id()))
		return 0;
	cpu = bpf_map_lookup_elem(&cpu_times, &zero);
	if (!cpu)
		return 0;
	now = bpf_ktime_get_ns();
	if (!cpu->last_ns) {
		u64 both = bpf_get_current_pid_tgid();

		cpu->last_ns = started_ns;
		cpu->tid = both;
		cpu->tgid = both >> 32;
		bpf_get_current_comm(cpu->comm, sizeof(cpu->comm));
	}
	if (now <= cpu->last_ns) // what interrupted this program has counted it
		return cpu;
	elapsed = now - cpu->last_ns;
	cpu->last_ns = now;
	if (cpu->irqs)
		cpu->irq_ns += elapsed;
	else if (cpu->softirqs)
		cpu->softirq_ns += elapsed;
	else if (!cpu->tid)
		cpu->idle_ns += elapsed;
	else {
		cpu->tasks_ns += elapsed;
		cpu->current_ns += elapsed;
	}
	return cpu;
}

SEC("tp_btf/irq_handler_entry")
int on_irq_entry(u64 *ctx)
{
	struct cpu_time *cpu = count_time();

	if (cpu)
		cpu->irqs = 1;
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int on_irq_exit(u64 *ctx)
{
	struct cpu_time *cpu = count_time();

	if (cpu)
		cpu->irqs = 0;
	return 0;
}

SEC("tp_btf/softirq_entry")
int on_softirq_entry(u64 *ctx)
{
	struct cpu_time *cpu = count_time();

	if (cpu)
		cpu->softirqs = 1;
	return 0;
}

SEC("tp_btf/softirq_exit")
int on_softirq_exit(u64 *ctx)
{
	struct cpu_time *cpu = count_time();

	if (cpu)
		cpu->softirqs = 0;
	return 0;
}

static __always_inline void count_task(struct cpu_time *cpu)
{
	u32 tid = cpu->tid;
	struct task_time *task;

	if (!tid || !cpu->current_ns)
		return;
	task = bpf_map_lookup_elem(&tasks, &tid);
	if (!task) {
		struct task_time none = {};

		bpf_map_update_elem(&tasks, &tid, &none, BPF_NOEXIST);
		task = bpf_map_lookup_elem(&tasks, &tid);
	}
	if (!task) {
		cpu->tasks_full += cpu->current_ns;
	} else {
		task->ns += cpu->current_ns;
		task->tgid = cpu->tgid;
		__builtin_memcpy(task->comm, cpu->comm, sizeof(task->comm));
	}
	cpu->current_ns = 0;
}

SEC("tp_btf/sched_switch")
int on_switch(u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	struct cpu_time *cpu = count_time();

	if (!cpu)
		return 0;
	bpf_probe_read_kernel(cpu->comm, sizeof(cpu->comm), prev->comm); // it may have a new one
	count_task(cpu);
	cpu->irqs = cpu->softirqs = 0;
	cpu->tid = next->pid;
	cpu->tgid = next->tgid;
	bpf_probe_read_kernel(cpu->comm, sizeof(cpu->comm), next->comm);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
