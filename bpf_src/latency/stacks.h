// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The stacks that slow calls end in.
#ifndef LATENCY_STACKS_H
#define LATENCY_STACKS_H

#define PLACES 4 // programs that are preempted at the same time: see take_place()
#include "moment.h"
#include "pid_namespace.h"
#include "places.h"
#include "stats.h"
#include "user_stacks.h"

bool phase = false; // user space is ready for copies

// At the return of a user function its registers become those behind the call: the stack begins with
// the caller. Kernel frames of a program that interrupted user code are those of the probe. False: the
// run has not begun.
static __always_inline bool find_stacks(void *ctx, struct slow_stacks *stacks, enum moment moment,
					struct stats *st)
{
	u32 place, tgid, tid;

	if (!phase)
		return false;
	place = take_place();
	if (place >= PLACES) {
		COUNT(st, places_taken);
		stacks->user = STACK_LOST;
		return true;
	}
	own_numbers(bpf_get_current_pid_tgid(), true, &tgid, &tid);
	if (moment == AT_RETURN)
		stacks->user = callers_by_ticket(ctx, place, tgid);
	else
		stacks->user = user_stack_by_ticket(ctx, place, tgid, moment == IN_USER);
	if (moment == IN_KERNEL)
		stacks->kernel = kernel_stack_of(ctx, place);
	give_back(place);
	return true;
}

#endif
