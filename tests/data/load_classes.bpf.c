// What other loaders' fixtures are about and no other fixture here: a lock in a value, string
// literals in a section of their own, padding and the last byte of an array, an atomic addition to
// a global, and variables that are hidden or weak.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct guarded {
	struct bpf_spin_lock lock;
	__u64 count;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct guarded);
} guarded SEC(".maps");

struct padded {
	__u8 first;
	__u64 second;
	__u8 third;
} padded = {1, 2, 3};

__u8 wide[8192];
__u64 total;
__attribute__((visibility("hidden"))) int not_shown;
__attribute__((weak)) int may_be_replaced = 5;

SEC("tc")
int locks(struct __sk_buff *packet)
{
	__u32 key = 0;
	struct guarded *value = bpf_map_lookup_elem(&guarded, &key);

	if (!value)
		return -1;
	bpf_spin_lock(&value->lock);
	value->count += 3;
	bpf_spin_unlock(&value->lock);
	return 0;
}

SEC("tc")
int touches(struct __sk_buff *packet)
{
	wide[sizeof(wide) - 1] = padded.third;
	__sync_fetch_and_add(&total, padded.second);
	not_shown++;
	return may_be_replaced;
}

SEC("tc")
int spells(struct __sk_buff *packet)
{
	char text[32];

	return bpf_snprintf(text, sizeof(text), "%s", (__u64[]){(__u64)"twelve chars"}, 8);
}

char LICENSE[] SEC("license") = "GPL";
