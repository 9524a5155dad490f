// Maps as they were defined before BTF, with iproute2's fields behind the five, all of them zero.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct bpf_elf_map {
	__u32 type, size_key, size_value, max_elem, flags;
	__u32 id, pinning, inner_id, inner_idx;
};

struct count {
	__u64 total, bytes;
};

struct ____btf_map_counts {
	__u32 key;
	struct count value;
};

const struct ____btf_map_counts counts_types __attribute__((section(".maps.counts"), used)) = {};

struct bpf_elf_map counts SEC("maps") = {
	.type = BPF_MAP_TYPE_HASH,
	.size_key = sizeof(__u32),
	.size_value = sizeof(struct count),
	.max_elem = 16,
	.flags = BPF_F_NO_PREALLOC,
};

struct bpf_elf_map last SEC("maps") = {
	.type = BPF_MAP_TYPE_ARRAY,
	.size_key = sizeof(__u32),
	.size_value = sizeof(__u64),
	.max_elem = 2,
};

SEC("syscall")
int count_one(void *context)
{
	struct count first = { 1, 10 };
	__u32 key = 7, slot = 1;
	__u64 *place = bpf_map_lookup_elem(&last, &slot);

	bpf_map_update_elem(&counts, &key, &first, BPF_ANY);
	if (place)
		*place = 11;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
