// Two programs that want the same map, for maps that one program alone may use.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

volatile __u32 step = 1;
volatile __u64 steps = 0;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} secrets SEC(".maps");

static __noinline __u64 *secret(__u32 key)
{
	steps += step;
	return bpf_map_lookup_elem(&secrets, &key);
}

SEC("socket")
int owner(struct __sk_buff *packet)
{
	__u64 *value = secret(0);

	return value ? ++*value : 99;
}

SEC("socket")
int stranger(struct __sk_buff *packet)
{
	__u64 *value = secret(0);

	return value ? *value : 99;
}
