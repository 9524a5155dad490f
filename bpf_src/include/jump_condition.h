// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Whether a jump of x86_64 is taken, at a probe on it.
#ifndef JUMP_CONDITION_H
#define JUMP_CONDITION_H

#include "purebpf.h"

#define ALWAYS 16 // the condition of a jump that has none

// The conditions of jumps, as their opcodes have them: Intel SDM volume 1, appendix B.
#define CARRY (1 << 0)
#define PARITY (1 << 2)
#define ZERO (1 << 6)
#define SIGN (1 << 7)
#define OVERFLOW (1 << 11)

static __always_inline bool is_taken(u64 flags, u32 condition)
{
	bool is_less = !(flags & SIGN) != !(flags & OVERFLOW), is_true = false;

	if (condition >= ALWAYS)
		return true;
	switch (condition >> 1) {
	case 0:
		is_true = flags & OVERFLOW;
		break;
	case 1:
		is_true = flags & CARRY;
		break;
	case 2:
		is_true = flags & ZERO;
		break;
	case 3:
		is_true = flags & (CARRY | ZERO);
		break;
	case 4:
		is_true = flags & SIGN;
		break;
	case 5:
		is_true = flags & PARITY;
		break;
	case 6:
		is_true = is_less;
		break;
	case 7:
		is_true = is_less || flags & ZERO;
		break;
	}
	return is_true != (condition & 1);
}

#endif
