// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// How long calls take: functions of the kernel and of programs, and pairs of events.
//
// A call is timed from when the program at its beginning is done until the one at its end begins:
// what they do is no part of it. x86_64 only. Compiled again, with stacks: latency_stacks.bpf.c.
#include "latency/frames.h"
#include "latency/rows.h"
#include "user_registers.h"

struct call_event {
	struct event head; // of the task; the time is that of the end
	u64 took_ns;
	u64 result;
	u64 argument;
	u64 kernel_stack; // enum stack_id, or a number
	u64 user_stack;
	u32 function;
	u32 depth; // calls that it was made in
};

// By cookie, or, on kernels without cookies (before Linux 5.15), of the whole object.
CONFIG bool has_cookies = true;
CONFIG u32 function = 0;
CONFIG u32 result_at = 0;  // the word of a trampoline's context that has the result
CONFIG u32 argument = 0;   // which is grouped by, or shown: 1 to 6; 0: none
CONFIG u32 static_argument = 0; // enum static_place: where a static probe has it
CONFIG u32 static_register = 0; // bytes into struct pt_regs
CONFIG u32 static_index = 0;	// the same
CONFIG u32 static_shift = 0;	// of what is in the index
CONFIG u64 static_value = 0;	// a constant, or what is added to an address
CONFIG u32 static_size = 8;	// bytes of it
CONFIG bool static_signed = false;
CONFIG bool only_count = false;
CONFIG bool with_tree = false;
CONFIG u64 slower_ns = ~0ULL; // calls that took so long are sent one by one

// As purebpf/symbols/usdt_arguments.py reads notes.
enum static_place {
	STATIC_CONSTANT = 0,
	STATIC_REGISTER = 1,
	STATIC_MEMORY = 2,
	STATIC_ELEMENT = 3,
};

// At the entry, or at the return: with and, from Linux 6.19 on, without looking at the context.
extern bool bpf_session_is_return(void) __ksym __weak;
extern bool bpf_session_is_return___of(void *ctx) __ksym __weak;

struct call_event *anchor_call_event; // keeps the type in BTF

struct slow_stacks {
	u64 kernel;
	u64 user;
};

#ifdef WITH_STACKS
#include "latency/stacks.h"
#else
static __always_inline bool find_stacks(void *ctx, struct slow_stacks *stacks,
					struct task_state *state, u32 depth, bool in_user,
					struct stats *st)
{
	return true;
}

static __always_inline u64 return_address(struct task_state *state, u64 place)
{
	return 0;
}
#endif

// A call that is over. Not inline: its event would take what a walk needs of the 512 bytes of stack.
static __noinline int send(struct frame *frame, u32 depth, u64 now_ns, u64 result,
			   struct slow_stacks *stacks)
{
	struct call_event event = {};
	u32 tgid, tid;

	own_numbers(bpf_get_current_pid_tgid(), true, &tgid, &tid);
	begin_event(&event.head, 0, tgid, tid);
	event.head.time_ns = now_ns;
	event.took_ns = now_ns - frame->start_ns;
	event.result = result;
	event.argument = frame->argument;
	event.function = frame->function;
	event.depth = depth;
	event.kernel_stack = stacks->kernel;
	event.user_stack = stacks->user;
	send_event(&event, sizeof(event));
	return 0;
}

static __always_inline void push(struct task_state *state, u32 id, u64 place, u64 word,
				 struct stats *st)
{
	u32 depth = state->depth;
	struct frame *frame;

	if (!depth)
		state->skipped = 0;
	OPAQUE(depth);
	if (depth >= DEPTH) {
		state->skipped++;
		COUNT(st, too_deep);
		return;
	}
	state->depth = depth + 1; // first: what interrupts this has frames above
	frame = &state->frames[depth];
	frame->function = id;
	frame->place = place;
	frame->back = return_address(state, place);
	frame->argument = word;
	frame->child_ns = 0;
	if (with_tree) {
		u32 outer = depth - 1;

		OPAQUE(outer);
		frame->path = path_below(outer < DEPTH ? state->frames[outer].path : 0, id);
	}
	frame->start_ns = bpf_ktime_get_ns();
}

// The state of the current task if its calls are asked for; NULL: they are not, or it has no place.
static __always_inline struct task_state *begin(u32 id, u64 word, struct stats *st)
{
	struct task_state *state;
	u32 tgid, tid;

	if (!own_task_wanted(&tgid, &tid))
		return NULL;
	COUNT(st, begun);
	if (!tid && bpf_get_current_pid_tgid())
		COUNT(st, outside_namespace);
	if (only_count) {
		add_to_row(id, 0, word);
		return NULL;
	}
	state = state_of(own_task(), true);
	if (!state)
		COUNT(st, states_full);
	return state;
}

// Whether the return matters.
static __always_inline bool enter_call(u32 id, u64 place, u64 word)
{
	struct stats *st = stats_here();
	struct task_state *state;
	u32 dropped;

	if (!st)
		return false;
	state = begin(id, word, st);
	if (!state)
		return false;
	dropped = drop_stale(state, place, id);
	if (dropped) {
		__sync_fetch_and_add(&st->returns_missed, dropped);
		state->skipped = 0;
	}
	push(state, id, place, word, st);
	return true;
}

// The frame at an index is over. `in_user`: the program interrupted user code, whose registers its
// context is.
static __always_inline void end(void *ctx, struct task_state *state, u32 at, u64 now_ns, u64 result,
				bool in_user, struct stats *st)
{
	struct frame *frame = &state->frames[at];
	u64 took_ns = now_ns - frame->start_ns, parent = 0;
	u32 outer = at - 1;

	COUNT(st, ended);
	OPAQUE(outer);
	if (with_tree) {
		if (outer < DEPTH) {
			state->frames[outer].child_ns += took_ns;
			parent = state->frames[outer].path;
		}
		add_to_node(frame, parent, took_ns);
	}
	if (took_ns >= least_ns)
		add_to_row(frame->function, took_ns,
			   grouping == BY_RESULT ? result : frame->argument);
	if (took_ns >= slower_ns) {
		struct slow_stacks stacks = {};

		if (find_stacks(ctx, &stacks, state, at, in_user, st))
			send(frame, at, now_ns, result, &stacks);
	}
}

// `place` is 0 where the stack does not say which call it was.
static __always_inline int leave_call(void *ctx, u32 id, u64 place, u64 result, bool in_user)
{
	u64 now_ns = bpf_ktime_get_ns();
	struct task_state *state = state_of(own_task(), false);
	struct stats *st = stats_here();
	u32 at, depth;

	if (!state || !st)
		return 0;
	if (!place && state->skipped) {
		state->skipped--;
		return 0;
	}
	at = find_frame(state, place, id);
	OPAQUE(at);
	if (at >= DEPTH)
		return 0; // it began before the run, or is not asked for
	depth = state->depth;
	if (depth > at + 1)
		__sync_fetch_and_add(&st->returns_missed, depth - at - 1);
	end(ctx, state, at, now_ns, result, in_user, st);
	state->depth = at;
	return 0;
}

// Events in pairs need not nest: one that ends leaves the others where they are.
static __always_inline int enter_pair(u32 id, u64 word)
{
	struct stats *st = stats_here();
	struct task_state *state;

	if (!st)
		return 0;
	state = begin(id, word, st);
	if (!state)
		return 0;
	if (state->depth >= DEPTH) { // of pairs whose ends do not come
		u32 live = 0;

#pragma clang loop unroll(disable)
		for (u32 i = 0; i < DEPTH; i++)
			live += state->frames[i].function != NO_FUNCTION;
		__sync_fetch_and_add(&st->returns_missed, live);
		state->depth = 0;
	}
	push(state, id, 0, word, st);
	return 0;
}

static __always_inline int leave_pair(void *ctx, u32 id, bool in_user)
{
	u64 now_ns = bpf_ktime_get_ns();
	struct task_state *state = state_of(own_task(), false);
	struct stats *st = stats_here();
	u32 at;

	if (!state || !st)
		return 0;
	at = find_frame(state, 0, id);
	OPAQUE(at);
	if (at >= DEPTH)
		return 0;
	end(ctx, state, at, now_ns, 0, in_user, st);
	state->frames[at].function = NO_FUNCTION;
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < DEPTH; i++) {
		u32 last = state->depth - 1;

		OPAQUE(last);
		if (last >= DEPTH || state->frames[last].function != NO_FUNCTION)
			break;
		state->depth = last;
	}
	return 0;
}

static __always_inline u32 function_at(void *ctx)
{
	return has_cookies ? bpf_get_attach_cookie(ctx) : function;
}

static __always_inline u64 argument_of(struct registers *ctx)
{
	switch (argument) {
	case 1:
		return REGISTER(ctx, di);
	case 2:
		return REGISTER(ctx, si);
	case 3:
		return REGISTER(ctx, dx);
	case 4:
		return REGISTER(ctx, cx);
	case 5:
		return REGISTER(ctx, r8);
	case 6:
		return REGISTER(ctx, r9);
	}
	return 0;
}

#define AT_FUNCTION(section, name)                                                    \
	SEC("?" section) int name(struct registers *ctx)                              \
	{                                                                             \
		enter_call(function_at(ctx), ctx->sp, argument_of(ctx));                   \
		return 0;                                                             \
	}

// At a uprobe the stack is as the return left it, without the address.
#define AT_RETURN(section, name, place, in_user)                                      \
	SEC("?" section) int name(struct registers *ctx)                              \
	{                                                                             \
		return leave_call(ctx, function_at(ctx), place, ctx->ax, in_user);    \
	}

AT_FUNCTION("uprobe", user_entry)
AT_RETURN("uretprobe", user_return, ctx->sp - sizeof(u64), true)
AT_FUNCTION("uprobe.multi", user_entries)
AT_RETURN("uretprobe.multi", user_returns, ctx->sp - sizeof(u64), true)
AT_FUNCTION("kprobe", kernel_entry)
AT_RETURN("kretprobe", kernel_return, 0, false)
AT_FUNCTION("kprobe.multi", kernel_entries)
AT_RETURN("kretprobe.multi", kernel_returns, 0, false)

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
	return leave_call(ctx, function_at(ctx), 0, ctx->ax, false);
}

// A word of a trampoline's context: its arguments, and behind them the result. The index is
// constant once the object is loaded: one of these remains.
static __always_inline u64 word_at(u64 *ctx, u32 index)
{
	switch (index) {
	case 0:
		return WORD(ctx, 8 * 0);
	case 1:
		return WORD(ctx, 8 * 1);
	case 2:
		return WORD(ctx, 8 * 2);
	case 3:
		return WORD(ctx, 8 * 3);
	case 4:
		return WORD(ctx, 8 * 4);
	case 5:
		return WORD(ctx, 8 * 5);
	case 6:
		return WORD(ctx, 8 * 6);
	case 7:
		return WORD(ctx, 8 * 7);
	case 8:
		return WORD(ctx, 8 * 8);
	case 9:
		return WORD(ctx, 8 * 9);
	case 10:
		return WORD(ctx, 8 * 10);
	case 11:
		return WORD(ctx, 8 * 11);
	case 12:
		return WORD(ctx, 8 * 12);
	}
	return 0;
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
	return leave_call(ctx, function, 0, word_at(ctx, result_at), false);
}

SEC("?tracepoint")
int pair_begin(void *ctx)
{
	return enter_pair(function_at(ctx), 0);
}

SEC("?tracepoint")
int pair_end(void *ctx)
{
	return leave_pair(ctx, function_at(ctx), false);
}

static __always_inline u64 register_at(struct registers *ctx, u32 offset)
{
	u64 word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), (void *)ctx + offset);
	return word;
}

static __always_inline u64 static_word(struct registers *ctx)
{
	u64 word = static_value;
	u32 bits = 64 - 8 * static_size;

	if (static_argument != STATIC_CONSTANT)
		word += register_at(ctx, static_register);
	if (static_argument == STATIC_ELEMENT)
		word += register_at(ctx, static_index) << (static_shift & 3);
	if (static_argument == STATIC_MEMORY || static_argument == STATIC_ELEMENT) {
		u64 address = word;

		word = 0;
		if (static_size <= sizeof(word))
			bpf_probe_read_user(&word, static_size, (void *)address);
	}
	word <<= bits;
	return static_signed ? (u64)((s64)word >> bits) : word >> bits;
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
	return leave_pair(ctx, function_at(ctx), true);
}

// The calls that a thread is in do not return.
static __always_inline int end_calls(void)
{
	struct task_state *state = state_of(own_task(), false);
	struct stats *st = stats_here();
	u32 open = 0;

	if (!state || !st)
		return 0;
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < DEPTH; i++) {
		if (i >= state->depth)
			break;
		open += state->frames[i].function != NO_FUNCTION;
	}
	__sync_fetch_and_add(&st->unfinished, open);
	state->depth = 0;
	return 0;
}

SEC("?tp_btf/sched_process_exit")
int end_task(u64 *ctx)
{
	end_calls();
	if (!task_storage)
		forget_by_address(bpf_get_current_task());
	return 0;
}

SEC("?tp_btf/sched_process_exec")
int on_exec(u64 *ctx)
{
	return end_calls();
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
