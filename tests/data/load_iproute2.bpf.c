// Maps and tail calls as iproute2 (tc, ip) defined them.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define PIN_OBJECT_NS 1
#define PIN_GLOBAL_NS 2
#define INNER 42
#define JUMPS 7

struct bpf_elf_map {
	__u32 type, size_key, size_value, max_elem, flags;
	__u32 id, pinning, inner_id, inner_idx;
};

struct bpf_elf_map inner SEC("maps") = {
	.type = BPF_MAP_TYPE_ARRAY,
	.size_key = sizeof(__u32),
	.size_value = sizeof(__u32),
	.max_elem = 1,
	.id = INNER,
	.inner_idx = 2,
	.pinning = PIN_GLOBAL_NS,
};

struct bpf_elf_map template SEC("maps") = {
	.type = BPF_MAP_TYPE_ARRAY,
	.size_key = sizeof(__u32),
	.size_value = sizeof(__u32),
	.max_elem = 1,
	.id = INNER + 1,
	.inner_idx = -1,
};

struct bpf_elf_map outer SEC("maps") = {
	.type = BPF_MAP_TYPE_ARRAY_OF_MAPS,
	.size_key = sizeof(__u32),
	.size_value = sizeof(__u32),
	.max_elem = 3,
	.inner_id = INNER,
	.pinning = PIN_OBJECT_NS,
};

struct bpf_elf_map empty SEC("maps") = {
	.type = BPF_MAP_TYPE_ARRAY_OF_MAPS,
	.size_key = sizeof(__u32),
	.size_value = sizeof(__u32),
	.max_elem = 3,
	.inner_id = INNER + 1,
};

struct bpf_elf_map jumps SEC("maps") = {
	.type = BPF_MAP_TYPE_PROG_ARRAY,
	.size_key = sizeof(__u32),
	.size_value = sizeof(__u32),
	.max_elem = 4,
	.id = JUMPS,
};

SEC("7/3")
int jumped(struct __sk_buff *packet)
{
	return 42;
}

SEC("classifier")
int entry(struct __sk_buff *packet)
{
	__u32 slot = 2, zero = 0, *value;
	void *found = bpf_map_lookup_elem(&outer, &slot);

	if (found && (value = bpf_map_lookup_elem(found, &zero)))
		*value += 1;
	if (bpf_map_lookup_elem(&empty, &slot))
		return 1;
	bpf_tail_call(packet, &jumps, 3);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
