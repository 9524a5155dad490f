// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Sizes that malloc() of the C library is asked for: a histogram, and the bytes of each stack.
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define SLOTS 48
#define MAX_FRAMES 127

struct place {
	__s64 stack;
	__u64 caller;
};

struct asked {
	__u64 calls, bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, __u32);
	__type(value, __u64);
} sizes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 8192);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, MAX_FRAMES * sizeof(__u64));
} stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, struct place);
	__type(value, struct asked);
} by_stack SEC(".maps");

volatile __u64 lost = 0;

// At the first instruction of a function, its frame is not made yet: a walk along the frame
// pointers leaves out the caller, which is in the return address.
static __always_inline __u64 return_address(struct pt_regs *context)
{
	__u64 address = 0;

#ifdef __TARGET_ARCH_x86
	bpf_probe_read_user(&address, sizeof(address), (void *)PT_REGS_SP(context));
#else
	address = PT_REGS_RET(context);
#endif
	return address;
}

// Where to attach is said in Python: the library is not at the same place everywhere.
SEC("uprobe")
int on_malloc(struct pt_regs *context)
{
	unsigned long size = PT_REGS_PARM1(context), rest = size;
	struct asked none = {}, *asked;
	struct place place;
	__u32 slot = 0;
	__u64 *count;

	for (int bit = 32; bit; bit >>= 1) { // log2, without a loop over the bits
		if (rest >> bit) {
			rest >>= bit;
			slot += bit;
		}
	}
	if (slot >= SLOTS)
		slot = SLOTS - 1;
	count = bpf_map_lookup_elem(&sizes, &slot);
	if (count)
		(*count)++;
	place.stack = bpf_get_stackid(context, &stacks, BPF_F_USER_STACK);
	if (place.stack < 0)
		goto lost;
	place.caller = return_address(context);
	bpf_map_update_elem(&by_stack, &place, &none, BPF_NOEXIST);
	asked = bpf_map_lookup_elem(&by_stack, &place);
	if (!asked)
		goto lost;
	__sync_fetch_and_add(&asked->calls, 1);
	__sync_fetch_and_add(&asked->bytes, size);
	return 0;
lost:
	__sync_fetch_and_add(&lost, 1);
	return 0;
}
