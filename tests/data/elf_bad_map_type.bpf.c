// Refused: a value of a type that nothing defines, and so without a size.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct elsewhere;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct elsewhere);
} vague SEC(".maps");

char LICENSE[] SEC("license") = "GPL";
