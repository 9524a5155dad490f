// CO-RE against the running kernel: flavours, guarded fields, bit fields, subprograms, callbacks.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#define TARGET __attribute__((preserve_access_index))

struct upid {
	int nr;
} TARGET;

struct pid {
	unsigned int level;
	struct upid numbers[1];
} TARGET;

struct task_struct {
	int pid;
	unsigned int sched_reset_on_fork : 1;
	unsigned int in_execve : 1;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	char comm[16];
} TARGET;

struct task_struct___old {
	long state;
} TARGET;

struct task_struct___new {
	unsigned int __state;
} TARGET;

struct task_struct___never {
	int there_is_no_such_field;
} TARGET;

enum bpf_map_type___here { BPF_MAP_TYPE_HASH___here = 77, NO_SUCH_MAP_TYPE = 78 };

__u64 seen[16];

static __noinline long state_of(struct task_struct *task)
{
	struct task_struct___new *new = (void *)task;
	struct task_struct___old *old = (void *)task;

	if (bpf_core_field_exists(new->__state))
		return BPF_CORE_READ(new, __state);
	return BPF_CORE_READ(old, state);
}

static long on_loop(__u32 index, void *context)
{
	seen[7] += index;
	return 0;
}

__noinline int impossible(__u64 address)
{
	struct task_struct___never *task = (void *)address;

	if (bpf_core_field_exists(task->there_is_no_such_field))
		return BPF_CORE_READ(task, there_is_no_such_field);
	return -1;
}

SEC("raw_tp/sched_switch")
int on_switch(struct bpf_raw_tracepoint_args *context)
{
	struct task_struct *task = (void *)context->args[1];

	seen[0] = BPF_CORE_READ(task, group_leader, pid);
	seen[1] = state_of(task);
	seen[2] = BPF_CORE_READ_BITFIELD_PROBED(task, sched_reset_on_fork);
	seen[3] = BPF_CORE_READ_BITFIELD_PROBED(task, in_execve);
	seen[4] = BPF_CORE_READ(task, thread_pid, numbers[0].nr);
	seen[5] = bpf_core_enum_value(enum bpf_map_type___here, BPF_MAP_TYPE_HASH___here);
	seen[6] = bpf_core_enum_value_exists(enum bpf_map_type___here, NO_SUCH_MAP_TYPE);
	bpf_loop(3, on_loop, 0, 0);
	seen[8] = bpf_core_type_size(struct task_struct);
	seen[9] = bpf_core_type_id_kernel(struct task_struct);
	seen[10] = bpf_core_type_matches(struct upid);
	seen[11] = impossible((__u64)task);
	seen[12] = bpf_core_field_offset(task->comm[3]);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
