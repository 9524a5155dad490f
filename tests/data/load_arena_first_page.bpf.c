// Takes the first page of its arena, as sched_ext's library does, beside global variables.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define __arena __attribute__((address_space(1)))
#define ARENA_ADDRESS (1ull << 44)

struct {
	__uint(type, 33); /* BPF_MAP_TYPE_ARENA */
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 100);
	enum { arena_address = ARENA_ADDRESS } map_extra;
} arena SEC(".maps");

int __arena counter = 7;

void __arena *bpf_arena_alloc_pages(void *map, void __arena *address, __u32 pages, int node,
				    __u64 flags) __ksym;

SEC("syscall")
int take_first_page(void *ctx)
{
	void __arena *first = (void __arena *)ARENA_ADDRESS;

	counter++;
	return bpf_arena_alloc_pages(&arena, first, 1, -1, 0) ? 1 : 0;
}

char LICENSE[] SEC("license") = "GPL";
