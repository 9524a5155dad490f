// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Slab caches of addresses, and the places in their objects.
#ifndef SLAB_H
#define SLAB_H

#include "purebpf.h"

struct kmem_cache_order_objects {
	u32 x; // from bit 16 on: the order of a slab's pages
} __attribute__((preserve_access_index));

struct kmem_cache {
	const char *name;
	u32 size; // from an object to the next
	u32 object_size;
	struct kmem_cache_order_objects oo;
	struct kmem_cache_order_objects min; // where memory is short
	u32 red_left_pad;		     // with CONFIG_SLUB_DEBUG
	int refcount;			     // caches that were merged into it, and itself
} __attribute__((preserve_access_index));

extern struct kmem_cache *bpf_get_kmem_cache(u64 address) __ksym __weak; // Linux 6.13

#define CACHE_LENGTH 32
#define OO_SHIFT 16 // mm/slub.c

CONFIG u32 page_size = 4096;

// Where in its object an address is: slabs are aligned to their size, and objects follow each other.
static __always_inline u32 slab_offset(struct kmem_cache *cache, u64 address, u32 order)
{
	u64 slab = (u64)page_size << ((order >> OO_SHIFT) & 15), offset = address & (slab - 1);
	u32 size = BPF_CORE_READ(cache, size);

	if (!size)
		return ~0U;
	offset %= size;
	if (bpf_core_field_exists(cache->red_left_pad))
		offset -= BPF_CORE_READ(cache, red_left_pad);
	return offset;
}

#endif
