// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Notes at each sample the priority of the task, a member of its struct in the kernel.
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct task_struct {
	int prio;
} __attribute__((preserve_access_index));

struct task_sample {
	int prio; // 100 to 139: 120 + nice; below 100: a real-time task
};

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} tasks SEC(".maps");

struct task_sample *tasks_record; // the type of the records of `tasks`

SEC("perf_event")
int count_by_member(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct task_sample sample = {.prio = BPF_CORE_READ(task, prio)};

	bpf_perf_event_output(ctx, &tasks, BPF_F_CURRENT_CPU, &sample, sizeof(sample));
	return 1; // 0 would drop the sample
}
