// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// How long calls take: functions of the kernel and of programs, and pairs of events.
//
// A call is timed from when the program at its beginning is done until the one at its end begins:
// what they do is no part of it. x86_64 only. Compiled again, with stacks: latency_stacks.bpf.c.
#include "latency/kernel_functions.h"
#include "latency/pairs.h"
#include "latency/user_functions.h"

#define AT_FUNCTION(section, name)                                       \
	SEC("?" section) int name(struct registers *ctx)                 \
	{                                                                \
		enter_call(function_at(ctx), ctx->sp, argument_of(ctx)); \
		return 0;                                                \
	}

#define AT_RETURN_OF(section, name)                                \
	SEC("?" section) int name(struct registers *ctx)           \
	{                                                          \
		return leave_call(ctx, function_at(ctx), ctx->ax); \
	}

AT_FUNCTION("kprobe", kernel_entry)
AT_RETURN_OF("kretprobe", kernel_return)
AT_FUNCTION("kprobe.multi", kernel_entries)
AT_RETURN_OF("kretprobe.multi", kernel_returns)

// Functions of programs have no return probes (uretprobes): the address that the kernel would divert
// a return with is nothing that an unwinder knows, and exceptions, forced unwinding and panics would
// end the program there. Their `ret` instructions and the jumps out of them have probes instead.
#define IN_PROGRAMS(single, multi, what)                      \
	SEC("?uprobe") int single(struct registers *ctx)      \
	{                                                     \
		return what;                                  \
	}                                                     \
	SEC("?uprobe.multi") int multi(struct registers *ctx) \
	{                                                     \
		return what;                                  \
	}

IN_PROGRAMS(user_entry, user_entries, enter_function(ctx, function_at(ctx)))
IN_PROGRAMS(user_return, user_returns, leave_function(ctx, true))
IN_PROGRAMS(user_jump, user_jumps, jump_on(ctx))
IN_PROGRAMS(user_leaving, user_leavings,
	    is_taken(ctx->flags, function_at(ctx)) ? leave_function(ctx, false) : 0)

// At exit(3): what its caller is in has not returned, the rest of the stack is over.
SEC("?uprobe")
int user_exit(struct registers *ctx)
{
	struct task_state *state = state_of(own_task(), false);
	struct stats *st = stats_here();

	if (state && st)
		mark_left(state, ctx->sp, 0, st);
	return 0;
}

// Both in one program: of a call that is not asked for, the kernel need not follow the return.
SEC("?kprobe.session")
int kernel_session(struct registers *ctx)
{
	bool at_return = false;

	if (bpf_session_is_return)
		at_return = bpf_session_is_return();
	else if (bpf_session_is_return___of)
		at_return = bpf_session_is_return___of(ctx);
	if (!at_return)
		return !enter_call(function_at(ctx), ctx->sp, argument_of(ctx));
	return leave_call(ctx, function_at(ctx), ctx->ax);
}

SEC("?fentry")
int trampoline_entry(u64 *ctx)
{
	enter_call(function, KERNEL_SPACE, argument ? word_at(ctx, argument - 1) : 0);
	return 0;
}

SEC("?fexit")
int trampoline_exit(u64 *ctx)
{
	return leave_call(ctx, function, word_at(ctx, result_at));
}

SEC("?tracepoint")
int pair_begin(void *ctx)
{
	enter_pair(function_at(ctx), 0);
	return SEEN_BY_PERF;
}

SEC("?tracepoint")
int pair_end(void *ctx)
{
	leave_pair(ctx, function_at(ctx), IN_KERNEL);
	return SEEN_BY_PERF;
}

// Static probes of programs are places in their code.
SEC("?uprobe")
int probe_begin(struct registers *ctx)
{
	return enter_pair(function_at(ctx), static_word(ctx));
}

SEC("?uprobe")
int probe_end(struct registers *ctx)
{
	return leave_pair(ctx, function_at(ctx), IN_USER);
}

// The calls that a thread is in do not return.
static __always_inline int end_calls(u64 user_sp)
{
	struct task_state *state = state_of(own_task(), false);
	struct stats *st = stats_here();
	u32 open = 0;

	if (!state || !st)
		return 0;
	if (user_sp)
		mark_left(state, user_sp, 0, st);
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < DEPTH; i++) {
		if (i >= state->depth)
			break;
		open += state->frames[i].function != NO_FUNCTION && !state->frames[i].is_left;
	}
	__sync_fetch_and_add(&st->unfinished, open);
	state->depth = 0;
	return 0;
}

SEC("?tp_btf/sched_process_exit")
int end_task(u64 *ctx)
{
	end_calls(own_user_sp());
	if (!task_storage)
		forget_by_address(bpf_get_current_task());
	return 0;
}

SEC("?tp_btf/sched_process_exec")
int on_exec(u64 *ctx)
{
	return end_calls(0);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
