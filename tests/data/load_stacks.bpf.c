// Counts the kernel stacks in which one process enters system calls; keeps its user stacks, too.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define DEPTH 127

const volatile __u32 tgid = 0;

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 1024);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, DEPTH * sizeof(__u64));
} stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 1024);
	__uint(map_flags, BPF_F_STACK_BUILD_ID);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, DEPTH * sizeof(struct bpf_stack_build_id));
} files SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

SEC("tp/raw_syscalls/sys_enter")
int count(void *ctx)
{
	__u64 one = 1, *seen;
	__u32 id;
	long found;

	if (bpf_get_current_pid_tgid() >> 32 != tgid)
		return 0;
	bpf_get_stackid(ctx, &files, BPF_F_USER_STACK);
	found = bpf_get_stackid(ctx, &stacks, 0);
	if (found < 0)
		return 0;
	id = found;
	seen = bpf_map_lookup_elem(&counts, &id);
	if (seen)
		__sync_fetch_and_add(seen, 1);
	else
		bpf_map_update_elem(&counts, &id, &one, BPF_ANY);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
