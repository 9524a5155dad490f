// A map that a kernel may not have, used only when user space says so.
#include <stddef.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

const volatile _Bool has_table;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} spare SEC(".maps"), table SEC(".maps");

SEC("socket")
int count(struct __sk_buff *packet)
{
	__u32 key = 0;
	__u64 *value = has_table ? bpf_map_lookup_elem(&table, &key) : NULL;

	return value ? ++*value : 99;
}

char LICENSE[] SEC("license") = "GPL";
