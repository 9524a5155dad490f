// Global variables in an arena, and pointers between its pages that user space follows.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define __arena __attribute__((address_space(1)))

struct node {
	struct node __arena *next;
	__u64 value;
};

struct {
	__uint(type, 33); /* BPF_MAP_TYPE_ARENA */
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 100);
	enum { arena_address = 1ull << 44 } map_extra;
} arena SEC(".maps");

int __arena counter = 7;
struct node __arena *__arena head;
struct node __arena nodes[4];

SEC("syscall")
int bump(void *ctx)
{
	counter++;
	for (int i = 0; i < 4; i++) {
		nodes[i].value = 10 + i;
		nodes[i].next = head;
		head = &nodes[i];
	}
	return counter;
}

char LICENSE[] SEC("license") = "GPL";
