// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The stacks of a slow call, and where a program finds them.
#ifndef LATENCY_MOMENT_H
#define LATENCY_MOMENT_H

#include "purebpf.h"

struct slow_stacks {
	u64 kernel;
	u64 user;
	bool has_result;
};

// Where a program finds the registers of the user that a stack begins with.
enum moment {
	IN_KERNEL = 0, // of a task in the kernel
	IN_USER = 1,   // its context has them
	AT_RETURN = 2, // the same, and the return address is at the stack pointer
};

#endif
