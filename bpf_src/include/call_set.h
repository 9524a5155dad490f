// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Which system calls are asked for, by number and ABI.
#ifndef CALL_SET_H
#define CALL_SET_H

#include "call_abi.h"

#define CALL_BITS 576 // numbers of each ABI that can be asked for

CONFIG bool has_calls = false;
CONFIG u64 calls[3][CALL_BITS / 64] = {}; // native, compat, x32

static __always_inline bool call_wanted(u32 nr, u32 abi)
{
	u32 word;

	if (nr & X32_BIT) {
		abi = 2;
		nr &= ~X32_BIT;
	}
	word = nr / 64;
	if (word >= CALL_BITS / 64)
		return false;
	return calls[abi][word] >> (nr % 64) & 1;
}

#endif
