// A HASH_OF_MAPS with static contents, whose key is a size and not a type.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

struct inner {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} leaf SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
	__uint(max_entries, 4);
	__uint(key_size, sizeof(int));
	__uint(value_size, sizeof(int));
	__array(values, struct inner);
} by_number SEC(".maps") = {
	.values = { [2] = &leaf },
};

SEC("socket")
int find(void *ctx)
{
	int number = 2;

	return bpf_map_lookup_elem(&by_number, &number) ? 7 : 3;
}
