// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Entries of hash maps that are added when they are first needed.
#ifndef MAP_ENTRY_H
#define MAP_ENTRY_H

#include "purebpf.h"

// Returns the value of a key; a map without the key gets `first`, and `is_new` is set. NULL: the map is
// full. The key is looked up again after it was added, as another CPU may have added it first.
static __always_inline void *find_or_add_entry(void *map, const void *key, const void *first,
					       bool *is_new)
{
	void *value = bpf_map_lookup_elem(map, key);

	*is_new = !value;
	if (value)
		return value;
	bpf_map_update_elem(map, key, first, BPF_NOEXIST);
	return bpf_map_lookup_elem(map, key);
}

static __always_inline void *find_or_add(void *map, const void *key, const void *first)
{
	bool is_new;

	return find_or_add_entry(map, key, first, &is_new);
}

#endif
