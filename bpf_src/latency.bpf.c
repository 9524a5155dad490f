// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// How long calls take: functions of the kernel and of programs, and pairs of events.
//
// A call is timed from when the program at its beginning is done until the one at its end begins:
// what they do is no part of it. x86_64 only. Compiled again, with stacks: latency_stacks.bpf.c.
#include "latency/frames.h"
#include "latency/rows.h"
#include "jump_condition.h"
#include "user_registers.h"

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

// By cookie, or, on kernels without cookies (before Linux 5.15), of the whole object.
CONFIG bool has_cookies = true;
CONFIG u32 function = 0;
CONFIG u32 result_at = 0;	// the word of a trampoline's context that has the result
CONFIG u32 argument = 0;	// which is grouped by, or shown: 1 to 6; 0: none
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

// Which helpers the kernel has.
enum bpf_func_id___registers {
	BPF_FUNC_task_pt_regs___registers = 175,
};

struct task_struct___stack {
	void *stack;
} __attribute__((preserve_access_index));

// The stack pointer that the current task entered the kernel with.
static __always_inline u64 own_user_sp(void)
{
	struct task_struct___stack *task = (void *)bpf_get_current_task();
	struct registers *registers;

	if (bpf_core_enum_value_exists(enum bpf_func_id___registers,
				       BPF_FUNC_task_pt_regs___registers))
		registers = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	else // before Linux 5.15: the end of the stack (task_pt_regs() of x86_64)
		registers = BPF_CORE_READ(task, stack) + KERNEL_STACK - sizeof(*registers);
	return kernel_word(&registers->sp);
}

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

// Beside a number, what the cookie of a function's entry may be.
#define ENTRY_ONLY (1U << 31)	   // its calls are counted; where they end is not known
#define PASSED_THROUGH 0x7fffffffU // it is only jumped to from one that is timed
// Calls that may return by one instruction: of functions that jump to the next one.
#define MOST_AT_ONCE 4

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

#ifdef WITH_STACKS
#include "latency/stacks.h"
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

// Not inline: there are many programs.
static __noinline int fill(struct task_state *state, u32 at, u32 outer, u32 id)
{
	struct frame *frame, *caller;

	OPAQUE(at);
	if (at >= DEPTH)
		return 0;
	frame = &state->frames[at];
	frame->function = id;
	frame->outer = outer;
	frame->level = 0;
	frame->is_left = 0;
	frame->has_jumped = 0;
	frame->outer_path = 0;
	frame->child_ns = 0;
	OPAQUE(outer);
	if (outer < DEPTH) {
		caller = &state->frames[outer];
		frame->level = caller->level + 1;
		frame->outer_path = caller->path;
	}
	if (with_tree)
		frame->path = path_below(frame->outer_path, id);
	return 0;
}

// Puts a call that begins into a frame: one that settle() found, or the next.
static __always_inline void push(struct task_state *state, u32 slot, u32 outer, u32 id, u64 place,
				 u64 word, struct stats *st)
{
	u32 depth = state->depth;
	bool in_kernel = place & KERNEL_SPACE;

	if (!depth)
		state->skipped = 0;
	if (slot >= depth)
		slot = depth;
	if (slot >= DEPTH && !in_kernel)
		slot = spare_frame(state);
	OPAQUE(slot);
	if (slot >= DEPTH) {
		state->skipped += in_kernel;
		COUNT(st, too_deep);
		return;
	}
	if (slot == depth)
		state->depth = depth + 1; // first: what interrupts this has frames above
	state->frames[slot].place = place;
	state->frames[slot].argument = word;
	fill(state, slot, outer, id);
	state->frames[slot].start_ns = bpf_ktime_get_ns();
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
	if (only_count || id & ENTRY_ONLY) {
		COUNT(st, counted);
		add_to_row(id & ~ENTRY_ONLY, 0, word);
		return NULL;
	}
	state = state_of(own_task(), true);
	if (!state)
		COUNT(st, states_full);
	return state;
}

// A function of the kernel begins. Whether the return matters.
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
	push(state, DEPTH, state->depth - 1, id, place, word, st);
	return true;
}

// The call in a frame is over. Not inline: several may end at once.
static __noinline int add_up(struct task_state *state, u32 at, u64 now_ns, u64 result)
{
	struct stats *st = stats_here();
	struct frame *frame;
	u64 took_ns;
	u32 outer;

	OPAQUE(at);
	if (at >= DEPTH || !st)
		return 0;
	frame = &state->frames[at];
	took_ns = now_ns - frame->start_ns;
	COUNT(st, ended);
	if (frame->is_left)
		COUNT(st, returns_late);
	outer = frame->outer;
	OPAQUE(outer);
	if (with_tree) {
		// A call that was left and has ended may have lost its caller to another one.
		if (outer < DEPTH && state->frames[outer].path == frame->outer_path &&
		    !frame->is_left)
			state->frames[outer].child_ns += took_ns;
		add_to_node(frame, frame->outer_path, took_ns);
	}
	if (took_ns >= least_ns)
		add_to_row(frame->function, took_ns,
			   grouping == BY_RESULT ? result : frame->argument);
	return 0;
}

// A function of the kernel returns. `ctx` says nothing of which call it was.
static __always_inline int leave_call(void *ctx, u32 id, u64 result)
{
	u64 now_ns = bpf_ktime_get_ns();
	struct task_state *state = state_of(own_task(), false);
	struct stats *st = stats_here();
	struct slow_stacks stacks = {.has_result = true};
	struct frame *frame;
	u32 at, depth;

	if (!state || !st)
		return 0;
	if (state->skipped) {
		state->skipped--;
		return 0;
	}
	at = find_frame(state, 0, id);
	OPAQUE(at);
	if (at >= DEPTH)
		return 0; // it began before the run, or is not asked for
	frame = &state->frames[at];
	depth = state->depth;
	if (depth > at + 1)
		__sync_fetch_and_add(&st->returns_missed, depth - at - 1);
	add_up(state, at, now_ns, result);
	if (now_ns - frame->start_ns >= slower_ns && find_stacks(ctx, &stacks, IN_KERNEL, st))
		send(frame, now_ns, &result, &stacks);
	state->depth = at;
	return 0;
}

// A function of a program begins, as it is called or jumped to.
static __always_inline int enter_function(struct registers *ctx, u32 id)
{
	struct task_state *state = state_of(own_task(), false);
	struct stats *st = stats_here();
	u32 slot = DEPTH, outer = DEPTH;
	u64 place = ctx->sp, word;

	if (!st)
		return 0;
	if (state && !only_count) {
		settle(state, place, id, st);
		if (state->goes_on)
			return 0;
		slot = state->slot;
		outer = state->outer;
	}
	if (id == PASSED_THROUGH)
		return 0;
	word = argument_of(ctx);
	state = begin(id, word, st);
	if (state)
		push(state, slot, outer, id, place, word, st);
	return 0;
}

// A function of a program is about to go on in another one, at the same place of the stack.
static __always_inline int jump_on(struct registers *ctx)
{
	struct task_state *state = state_of(own_task(), false);
	struct stats *st = stats_here();

	if (state && st && is_taken(ctx->flags, function_at(ctx)))
		mark_jumped(state, ctx->sp, st);
	return 0;
}

// The innermost call at a place is over; when it began, 0: there is none. Not inline: there may be
// several.
static __noinline u64 end_at(struct task_state *state, u64 place, u64 now_ns, u64 *result,
			     struct slow_stacks *stacks)
{
	u32 at = find_place(state, place);
	struct frame *frame;

	OPAQUE(at);
	if (at >= DEPTH)
		return 0; // it began before the run, or is not asked for
	frame = &state->frames[at];
	add_up(state, at, now_ns, *result);
	if (stacks && now_ns - frame->start_ns >= slower_ns)
		send(frame, now_ns, result, stacks);
	frame->function = NO_FUNCTION;
	return frame->start_ns;
}

// The stack pointer is where the calls at `place` have their return address: they are over.
static __always_inline int leave_function(struct registers *ctx, bool has_result)
{
	u64 now_ns = bpf_ktime_get_ns(), place = ctx->sp, result = ctx->ax, since_ns;
	struct task_state *state = state_of(own_task(), false);
	struct stats *st = stats_here();
	struct slow_stacks stacks = {.has_result = has_result};
	bool is_slow = false;

	if (!state || !st)
		return 0;
	since_ns = first_start(state, place);
	if (!since_ns)
		return 0;
	if (now_ns - since_ns >= slower_ns)
		is_slow = find_stacks(ctx, &stacks, AT_RETURN, st);
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < MOST_AT_ONCE; i++)
		if (!end_at(state, place, now_ns, &result, is_slow ? &stacks : NULL))
			break;
	trim(state);
	if (state->depth)
		mark_left(state, place, since_ns, st);
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
	push(state, DEPTH, DEPTH, id, 0, word, st);
	return 0;
}

static __always_inline int leave_pair(void *ctx, u32 id, enum moment moment)
{
	u64 now_ns = bpf_ktime_get_ns(), result = 0;
	struct task_state *state = state_of(own_task(), false);
	struct stats *st = stats_here();
	struct slow_stacks stacks = {};
	struct frame *frame;
	u32 at;

	if (!state || !st)
		return 0;
	at = find_frame(state, 0, id);
	OPAQUE(at);
	if (at >= DEPTH)
		return 0;
	frame = &state->frames[at];
	add_up(state, at, now_ns, 0);
	if (now_ns - frame->start_ns >= slower_ns && find_stacks(ctx, &stacks, moment, st))
		send(frame, now_ns, &result, &stacks);
	frame->function = NO_FUNCTION;
	trim(state);
	return 0;
}

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
	return leave_call(ctx, function, word_at(ctx, result_at));
}

SEC("?tracepoint")
int pair_begin(void *ctx)
{
	return enter_pair(function_at(ctx), 0);
}

SEC("?tracepoint")
int pair_end(void *ctx)
{
	return leave_pair(ctx, function_at(ctx), IN_KERNEL);
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
