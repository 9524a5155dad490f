// Refused: a map that nobody else could see.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

static struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} invisible SEC(".maps");

SEC("raw_tp/sched_switch")
int use(void *context)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&invisible, &zero) != 0;
}

char LICENSE[] SEC("license") = "GPL";
