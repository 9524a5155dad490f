// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// How address spaces grow: mmap(2), mremap(2) and brk(2) that succeed. x86_64 only.
#ifndef MEM_GROWTH_H
#define MEM_GROWTH_H

#include "sites.h"

// arch/x86/entry/syscalls/syscall_64.tbl
#define CALL_MMAP 9
#define CALL_BRK 12
#define CALL_MREMAP 25

#define PAGE_BITS 12
#define SHARED 0x1     // MAP_SHARED, and a part of MAP_SHARED_VALIDATE
#define ANONYMOUS 0x20 // MAP_ANONYMOUS
#define LAST_ERROR -4095L

struct mm_struct {
	unsigned long brk;
} __attribute__((preserve_access_index));

struct growth {
	u64 bytes;
	u32 kind;
};

// Where the heap of a thread's process ended when it called brk.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u64); // bpf_get_current_pid_tgid()
	__type(value, u64);
} heap_ends SEC(".maps");

static __always_inline u64 whole_pages(u64 bytes)
{
	return (bytes + (1 << PAGE_BITS) - 1) >> PAGE_BITS << PAGE_BITS;
}

static __always_inline void begin_brk(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	u64 thread = bpf_get_current_pid_tgid(), heap_end = BPF_CORE_READ(task, mm, brk);

	bpf_map_update_elem(&heap_ends, &thread, &heap_end, BPF_ANY);
}

static __always_inline u64 end_brk(u64 heap_end)
{
	u64 thread = bpf_get_current_pid_tgid();
	u64 *before = bpf_map_lookup_elem(&heap_ends, &thread);
	u64 grown = 0;

	if (!before)
		return 0;
	if (heap_end > *before)
		grown = heap_end - *before;
	bpf_map_delete_elem(&heap_ends, &thread);
	return grown;
}

// What says how a call grows memory: its registers are more than the stack has room for.
struct call_words {
	u64 number;
	u64 second;
	u64 third;
	u64 fourth;
};

// False: it is none of those, or not of a 64-bit program.
static __always_inline bool read_call(struct registers *registers, struct call_words *call)
{
	u64 cs;

	if (bpf_probe_read_kernel(&call->number, sizeof(u64), &registers->orig_ax))
		return false;
	if (call->number != CALL_MMAP && call->number != CALL_BRK && call->number != CALL_MREMAP)
		return false;
	return !bpf_probe_read_kernel(&call->second, sizeof(u64), &registers->si) &&
	       !bpf_probe_read_kernel(&call->third, sizeof(u64), &registers->dx) &&
	       !bpf_probe_read_kernel(&call->fourth, sizeof(u64), &registers->r10) &&
	       !bpf_probe_read_kernel(&cs, sizeof(cs), &registers->cs) && cs == USER_CS;
}

// What the system call that ends has added to the address space.
static __always_inline struct growth growth_of(struct call_words *call, s64 result)
{
	struct growth growth = {.kind = MAPPED};

	if (result < 0 && result >= LAST_ERROR)
		return growth;
	if (call->number == CALL_BRK) {
		growth.kind = HEAP;
		growth.bytes = end_brk(result);
	} else if (call->number == CALL_MREMAP) {
		u64 before = whole_pages(call->second), after = whole_pages(call->third);

		growth.bytes = after > before ? after - before : 0;
	} else {
		growth.bytes = whole_pages(call->second);
		if (!(call->fourth & ANONYMOUS) || call->fourth & SHARED)
			growth.kind = FILE_MAPPED;
		else if (!call->third)
			growth.kind = RESERVED;
	}
	return growth;
}

#endif
