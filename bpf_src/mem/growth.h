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
#define SHARED 0x1    // MAP_SHARED, and a part of MAP_SHARED_VALIDATE
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

// What the system call that ends has added to the address space.
static __always_inline struct growth growth_of(struct registers *call, s64 result)
{
	struct growth growth = {.kind = MAPPED};

	if (result < 0 && result >= LAST_ERROR)
		return growth;
	if (call->orig_ax == CALL_BRK) {
		growth.kind = HEAP;
		growth.bytes = end_brk(result);
	} else if (call->orig_ax == CALL_MREMAP) {
		u64 before = whole_pages(call->si), after = whole_pages(call->dx);

		growth.bytes = after > before ? after - before : 0;
	} else {
		growth.bytes = whole_pages(call->si);
		if (!(call->r10 & ANONYMOUS) || call->r10 & SHARED)
			growth.kind = FILE_MAPPED;
		else if (!call->dx)
			growth.kind = RESERVED;
	}
	return growth;
}

#endif
