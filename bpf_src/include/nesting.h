// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Things that begin and end on one CPU, and nest there as interrupts do. Each has a place in an array
// of the program, and an object that tells its end.
#ifndef NESTING_H
#define NESTING_H

#include "purebpf.h"

#define DEPTH 4 // a task, a softirq, a hardirq and an NMI

struct nesting {
	u32 depth;
	u32 pad;
	u64 objects[DEPTH];
};

// Returns a place for an object that begins. Where all are taken, ends were missed: the objects there
// are given up, and added to `ends_missed`.
static __always_inline u32 next_place(struct nesting *nesting, u64 *ends_missed)
{
	u32 place = nesting->depth;

	OPAQUE(place);
	if (place < DEPTH)
		return place;
	__sync_fetch_and_add(ends_missed, DEPTH);
	return 0;
}

// Keeps an object at the place that next_place() returned.
static __always_inline void enter_object(struct nesting *nesting, u32 place, u64 object)
{
	nesting->objects[place] = object;
	nesting->depth = place + 1;
}

// Returns the place of an object that ends, and leaves it. Objects that began inside of it have ended,
// too, and nobody saw it: they are added to `ends_missed`. DEPTH: the object did not begin here.
static __always_inline u32 leave_object(struct nesting *nesting, u64 object, u64 *ends_missed)
{
	u32 place = DEPTH;

#pragma clang loop unroll(full)
	for (u32 at = 0; at < DEPTH; at++)
		if (at < nesting->depth && nesting->objects[at] == object)
			place = at;
	if (place < DEPTH) {
		if (nesting->depth > place + 1)
			__sync_fetch_and_add(ends_missed, nesting->depth - place - 1);
		nesting->depth = place;
	}
	return place;
}

#endif
