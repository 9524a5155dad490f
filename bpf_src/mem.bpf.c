// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Memory by user stack: page faults, how address spaces grow, what is allocated and not freed.
#define PLACES 4 // programs that are preempted at the same time: see take_place()
#include "comm.h"
#include "pid_namespace.h"
#include "targets.h"
#include "mem/growth.h"
#include "mem/allocators.h"

static __always_inline int fault(struct registers *ctx, u32 kind)
{
	struct origin from = {.registers = ctx};
	struct stats *st = stats_here();
	struct site_key key = {};

	if (!phase || !st || is_own_process())
		return 0;
	COUNT(st, faults);
	if (!wanted(&key, kind, st))
		return 0;
	from.caller = caller_of_allocator();
	key.user_stack = stack_here(ctx, &from, key.tgid, st);
	add_to_site(&key, 0, st);
	return 0;
}

SEC("?perf_event")
int on_minor_fault(struct registers *ctx)
{
	return fault(ctx, MINOR_FAULT);
}

SEC("?perf_event")
int on_major_fault(struct registers *ctx)
{
	return fault(ctx, MAJOR_FAULT);
}

SEC("?tp_btf/sys_enter")
int on_call(u64 *ctx)
{
	if (phase && ctx[1] == CALL_BRK)
		begin_brk();
	return 0;
}

SEC("?tp_btf/sys_exit")
int on_call_end(u64 *ctx)
{
	struct stats *st = stats_here();
	struct call_words call;
	struct site_key key = {};
	struct origin from = {};
	struct growth growth;

	if (!phase || !st || !read_call((void *)ctx[0], &call))
		return 0;
	growth = growth_of(&call, ctx[1]);
	if (!growth.bytes || !wanted(&key, growth.kind, st))
		return 0;
	COUNT(st, growths);
	from.caller = caller_of_allocator();
	key.user_stack = stack_here(ctx, &from, key.tgid, st);
	add_to_site(&key, growth.bytes, st);
	return 0;
}

// No return probes (uretprobes): an exception that passes through one would end the program. The
// instructions that return have probes, and the jumps to other functions.
//
// Each twice: links of many places are taken away at once, not place after place.
#define AT_CODE(single, multi, what)                          \
	SEC("?uprobe") int single(struct registers *ctx)      \
	{                                                     \
		return what(ctx);                             \
	}                                                     \
	SEC("?uprobe.multi") int multi(struct registers *ctx) \
	{                                                     \
		return what(ctx);                             \
	}

AT_CODE(on_entry, on_entries, enter_function)
AT_CODE(on_return, on_returns, leave_function)
AT_CODE(on_jump, on_jumps, jump_on)
AT_CODE(on_clear, on_clears, clear_on)

char LICENSE[] SEC("license") = "Dual BSD/GPL";
