// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The greatest of values that many CPUs add.
#ifndef MAXIMUM_H
#define MAXIMUM_H

#include "purebpf.h"

#define RAISES 16 // each failed attempt means that another CPU raised it in between

// Linux 5.12 has compare and exchange.
static __always_inline void raise_to(u64 *greatest, u64 value)
{
	u64 known = *greatest;

	for (u32 attempt = 0; attempt < RAISES && value > known; attempt++) {
		u64 seen = __sync_val_compare_and_swap(greatest, known, value);

		if (seen == known)
			return;
		known = seen;
	}
}

#endif
