// Maps with static contents: a program array filled with programs, an array of maps.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

int second(void *ctx);

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 3);
	__uint(key_size, sizeof(__u32));
	__array(values, int(void *));
} jumps SEC(".maps") = {
	.values = { [1] = (void *)&second },
};

struct inner {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u64);
} leaf SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 2);
	__type(key, __u32);
	__array(values, struct inner);
} tree SEC(".maps") = {
	.values = { [1] = &leaf },
};

SEC("socket")
int second(void *ctx)
{
	return 42;
}

SEC("socket")
int first(void *ctx)
{
	__u32 slot = 1, key = 2;
	__u64 *value;
	void *inner = bpf_map_lookup_elem(&tree, &slot);

	if (inner && (value = bpf_map_lookup_elem(inner, &key)))
		*value = 5;
	bpf_tail_call(ctx, &jumps, 1);
	return 1;
}

SEC("socket")
int empty_slot(void *ctx)
{
	bpf_tail_call(ctx, &jumps, 0);
	return 3;
}
