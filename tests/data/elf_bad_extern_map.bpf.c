// Refused: a map that is defined in another object, which was not linked in.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

extern struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} theirs SEC(".maps");

SEC("raw_tp/sched_switch")
int use(void *context)
{
	__u32 key = 0;

	return bpf_map_lookup_elem(&theirs, &key) != 0;
}

char LICENSE[] SEC("license") = "GPL";
