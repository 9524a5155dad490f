// A map of maps with a struct that only the inner map's definition names: clang leaves it out.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct event {
	int number;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
	__uint(max_entries, 8);
	__type(key, __u32);
	__array(values, struct {
		__uint(type, BPF_MAP_TYPE_HASH);
		__uint(max_entries, 4);
		__type(key, __u32);
		__type(value, struct event);
	});
} outer SEC(".maps");

SEC("raw_tp/sys_enter")
int lookup(void *ctx)
{
	__u32 key = 0;

	return bpf_map_lookup_elem(&outer, &key) != 0;
}
