// Refused: a number in the variable, where only its type is looked at.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	int (*max_entries)[1];
	__type(key, __u32);
	__type(value, __u32);
} confused SEC(".maps") = { .max_entries = (void *)5 };

char LICENSE[] SEC("license") = "GPL";
