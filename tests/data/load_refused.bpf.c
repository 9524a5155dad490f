// Programs that the verifier refuses, each for its own reason.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8);
	__type(key, __u32);
	__type(value, __u64);
} table SEC(".maps");

SEC("?raw_tp/sys_enter")
int null_pointer(void *ctx)
{
	__u32 key = 0;
	__u64 *value = bpf_map_lookup_elem(&table, &key);

	return *value; // never checked
}

SEC("?raw_tp/sys_enter")
int endless(void *ctx)
{
	volatile int turn = 0;

	for (;;)
		turn = turn;
	return 0;
}

SEC("?raw_tp/sys_enter")
int out_of_stack(void *ctx)
{
	char room[8] = {};
	int place = bpf_get_prandom_u32();

	*(volatile char *)(room + place) = 1;
	return room[0];
}

__noinline int read_it(int *number)
{
	return *number; // may be NULL: the function is global
}

SEC("?raw_tp/sys_enter")
int in_subprogram(void *ctx)
{
	int number = 1;

	return read_it(&number);
}

SEC("?perf_event")
int outside_context(void *ctx)
{
	return *(volatile int *)(ctx + 4096);
}

// Long enough a path to overflow a first log buffer of any modest size.
SEC("?raw_tp/sys_enter")
int long_story(void *ctx)
{
	volatile __u64 sum = 0;

	for (int i = 0; i < 3000; i++)
		sum += i;
	return *(volatile int *)(sum + 1);
}

struct task_struct {
	int no_such_member;
} __attribute__((preserve_access_index));

SEC("?tp_btf/sys_enter")
int missing_field(__u64 *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();

	return task->no_such_member;
}

SEC("?raw_tp/sys_enter")
int accepted(void *ctx)
{
	return 0;
}
