// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What the tracepoint sched_switch says of the task that leaves.
#ifndef SCHED_SWITCH_H
#define SCHED_SWITCH_H

#include "task.h"

CONFIG bool has_prev_state = true; // it passes the state (Linux 5.18, commit fa2c3254d7cf)

static __always_inline bool preempted(u64 *ctx)
{
	return ctx[0] & 1;
}

// TASK_* bits. A task that is preempted keeps those of where it was on its way to.
static __always_inline u64 left_in(u64 *ctx)
{
	return has_prev_state ? (u32)ctx[3] : state_bits((struct task_struct *)ctx[1]);
}

#endif
