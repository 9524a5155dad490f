// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The event of a slow call, with its stacks where the object has them.
#ifndef LATENCY_EVENT_H
#define LATENCY_EVENT_H

#include "events.h"
#include "frames.h"
#include "moment.h"

struct call_event {
	struct event head; // of the task; the time is that of the end
	u64 took_ns;
	u64 result;
	u64 argument;
	u64 kernel_stack; // enum stack_id, or a number
	u64 user_stack;
	u32 function;
	__u16 depth; // calls that it was made in
	__u16 has_result;
};

CONFIG u64 slower_ns = ~0ULL; // calls that took so long are sent one by one

struct call_event *anchor_call_event; // keeps the type in BTF

#ifdef WITH_STACKS
#include "stacks.h"
#else
static __always_inline bool find_stacks(void *ctx, struct slow_stacks *stacks, enum moment moment,
					struct stats *st)
{
	return true;
}
#endif

// A call that is over. Not inline: its event would take what a walk needs of the 512 bytes of stack.
static __noinline int send(struct frame *frame, u64 now_ns, u64 *result, struct slow_stacks *stacks)
{
	struct call_event event = {};
	u32 tgid, tid;

	own_numbers(bpf_get_current_pid_tgid(), true, &tgid, &tid);
	begin_event(&event.head, 0, tgid, tid);
	event.head.time_ns = now_ns;
	event.took_ns = now_ns - frame->start_ns;
	event.has_result = stacks->has_result;
	event.result = *result;
	event.argument = frame->argument;
	event.function = frame->function;
	event.depth = frame->level;
	event.kernel_stack = stacks->kernel;
	event.user_stack = stacks->user;
	send_event(&event, sizeof(event));
	return 0;
}

#endif
