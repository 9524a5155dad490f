// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The functions of <purebpf/stacks.h>: purebpf.stacks.load() links them into other people's programs
// (purebpf/relocate/join.py). They are called by a program itself, and are its frame number 2: the
// walk of Python frames has the six other frames that a BPF call chain may have.
#define PLACES 4 // programs that are preempted at the same time: see take_place()
#define STACK_OWNERS
#define INLINE_WALK_OF_PYTHON
#define LIVE_MAPPINGS
#include "pid_namespace.h"
#include "places.h"
#include "user_stacks.h"

// Programs may be preempted, so that every field is added to atomically.
struct call_stats {
	u64 stacks;	   // user_stack() was called while the run lasts
	u64 kernel_stacks; // kernel_stack() was called
	u64 early;	   // a call of either before the run began, or after it ended
	u64 places_taken;  // more programs than PLACES were preempted: the stack is missing
};

// A digest of the library in objects that other loaders load: purebpf attaches to its own version.
CONFIG u64 library_digest = 0;

bool phase = false; // user space is ready for copies

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct call_stats);
} call_stats SEC(".maps");

// Counts a call and takes a place to walk a stack in. PLACES: there is no walk, and `*number` is the
// answer.
static __always_inline u32 begin_call(bool is_user, u64 *number)
{
	u32 zero = 0, place;
	struct call_stats *st = bpf_map_lookup_elem(&call_stats, &zero);

	*number = STACK_LOST;
	if (!st)
		return PLACES;
	if (!phase) {
		__sync_fetch_and_add(&st->early, 1);
		*number = STACK_UNAVAILABLE;
		return PLACES;
	}
	__sync_fetch_and_add(is_user ? &st->stacks : &st->kernel_stacks, 1);
	place = take_place();
	if (place >= PLACES)
		__sync_fetch_and_add(&st->places_taken, 1);
	return place;
}

static __always_inline u64 user_stack_at(void *ctx, bool has_registers)
{
	u32 place, tgid, tid;
	u64 number;

	place = begin_call(true, &number);
	if (place >= PLACES)
		return number;
	own_numbers(bpf_get_current_pid_tgid(), true, &tgid, &tid);
	number = user_stack_by_ticket(ctx, place, tgid, has_registers);
	give_back(place);
	return number;
}

// For programs whose context begins with registers: of perf events, uprobes, USDT and kprobes. Used,
// or clang would change the parameters.
static __noinline __attribute__((used)) u64 user_stack_by_registers(void *ctx)
{
	return user_stack_at(ctx, true);
}

// For programs of tracepoints and functions of the kernel: the registers are the task's.
static __noinline __attribute__((used)) u64 user_stack_by_task(void *ctx)
{
	return user_stack_at(ctx, false);
}

static __noinline __attribute__((used)) u64 kernel_stack_here(void *ctx)
{
	u32 place;
	u64 number;

	place = begin_call(false, &number);
	if (place >= PLACES)
		return number;
	number = kernel_stack_of(ctx, place);
	give_back(place);
	return number;
}

// They show that verifiers take the functions.

u64 user_number;
u64 kernel_number;

SEC("?perf_event")
int at_registers(void *ctx)
{
	user_number = user_stack_by_registers(ctx);
	kernel_number = kernel_stack_here(ctx);
	return 0;
}

SEC("?tracepoint")
int at_tracepoint(void *ctx)
{
	user_number = user_stack_by_task(ctx);
	kernel_number = kernel_stack_here(ctx);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
