// Every attribute a map can have, in every way to write it.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct pair {
	__u32 left;
	__u64 right;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1000);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_NUMA_NODE);
	__uint(numa_node, 0);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, struct pair);
	__type(value, __u64);
} typed SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(key_size, 12);
	__uint(value_size, 24);
	__uint(max_entries, 7);
} sized SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__uint(key_size, sizeof(__u32));
	__type(value, struct pair[4]);
	__uint(max_entries, 2);
} both SEC(".maps");

typedef struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 16);
} leaf_t;

leaf_t leaf_a SEC(".maps"), leaf_b SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 4);
	__type(key, __u32);
	__array(values, leaf_t);
} tree SEC(".maps") = {
	.values = { [1] = &leaf_a, [3] = &leaf_b },
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
	__uint(max_entries, 8);
	__type(key, __u32);
	__array(values, struct {
		__uint(type, BPF_MAP_TYPE_RINGBUF);
		__uint(max_entries, 4096);
	});
} rings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8192);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_BLOOM_FILTER);
	__type(value, __u64);
	__uint(max_entries, 100);
	__uint(map_extra, 3);
} bloom SEC(".maps");

struct {
	__uint(type, 33); // BPF_MAP_TYPE_ARENA
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 100);
	enum { arena_start = 1ULL << 44 } map_extra;
} arena SEC(".maps");

int target(void *context);

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 3);
	__type(key, __u32);
	__array(values, int(void *));
} jumps SEC(".maps") = {
	.values = { [2] = &target },
};

SEC("raw_tp/sched_switch")
int target(void *context)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&both, &zero) != 0;
}

SEC("raw_tp/sched_switch")
int jump(void *context)
{
	bpf_tail_call(context, &jumps, 2);
	return bpf_map_lookup_elem(&sized, &(struct pair){}) != 0;
}

char LICENSE[] SEC("license") = "GPL";
