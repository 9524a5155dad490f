// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// malloc(3) and the like, at uprobes. x86_64 only.
//
// A thread is in one allocator at a time: what it calls inside belongs to it. Memory is entered when
// the allocator returns it, and removed before it is freed: no other thread can have the address in
// between.
#ifndef MEM_ALLOCATORS_H
#define MEM_ALLOCATORS_H

#include "sites.h"
#include "jump_condition.h"

// The cookie of a probe: what its function takes.
enum function {
	MALLOC = 1,	     // (bytes)
	CALLOC = 2,	     // (elements, bytes of each)
	ALIGNED_ALLOC = 3,   // (alignment, bytes)
	POSIX_MEMALIGN = 4,  // (where the address goes, alignment, bytes); returns 0
	REALLOC = 5,	     // (address, bytes)
	FREE = 6,	     // (address)
	PASSED_THROUGH = 7,  // one that is only jumped to from another
	REALLOC_ARRAY = 8,   // (address, elements, bytes of each)
	RESIZE = 9,	     // (address, bytes); returns the bytes that it has now, in its place
	DESTROY_HEAP = 10,   // (heap): all that is in it is freed
	COPY_TEXT = 11,	     // of a size that is not known here
	BEHIND_HEAP = 0x100, // besides: the first argument is a heap, the others follow
};

struct asked {
	u64 bytes;
	u64 pointer; // POSIX_MEMALIGN: where to; REALLOC, RESIZE: what is given back
	u32 function;
	__u16 was_followed; // `old` is what `pointer` was
	__u16 has_jumped;   // it goes on in another function (a tail call)
	struct allocation old;
};

struct call {
	struct asked asked;
	struct registers caller; // those that outlive a call, as it will find them
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u64); // bpf_get_current_pid_tgid()
	__type(value, struct call);
} calls SEC(".maps");

static __always_inline struct allocation_key allocation_at(u64 address)
{
	struct allocation_key key = {
		.address = address,
		.process = bpf_get_current_pid_tgid() >> 32,
	};

	return key;
}

// Adds to what was freed, or takes back, as `sign` says.
static __always_inline void count_freed(struct allocation *allocation, s64 sign)
{
	struct site *site = bpf_map_lookup_elem(&sites, &allocation->site);

	if (!site)
		return;
	__sync_fetch_and_add(&site->freed, sign);
	__sync_fetch_and_add(&site->freed_bytes, sign * allocation->bytes);
}

// False: it was allocated before the run, by the process that forked this one, or by a thread that
// was not asked for.
static __always_inline bool remove(u64 address, struct allocation *was)
{
	struct allocation_key key = allocation_at(address);
	struct allocation *allocation = bpf_map_lookup_elem(&allocations, &key);

	if (!allocation)
		return false;
	*was = *allocation;
	if (bpf_map_delete_elem(&allocations, &key))
		return false;
	count_freed(was, 1);
	return true;
}

static __always_inline int enter(u64 address, struct allocation *allocation, struct stats *st)
{
	struct allocation_key key = allocation_at(address);
	struct site *site;
	int err;

	if (bpf_map_lookup_elem(&allocations, &key))
		COUNT(st, replaced);
	err = bpf_map_update_elem(&allocations, &key, allocation, BPF_ANY);
	if (!err)
		return 0;
	if (err == -EBUSY)
		COUNT(st, allocations_busy);
	else
		COUNT(st, allocations_full);
	site = bpf_map_lookup_elem(&sites, &allocation->site);
	if (site) {
		__sync_fetch_and_add(&site->unfollowed, 1);
		__sync_fetch_and_add(&site->unfollowed_bytes, allocation->bytes);
	}
	return err;
}

// False: the function has ended without a return (an exception, longjmp), as its return address has
// been overwritten.
static __always_inline bool is_in_progress(struct call *call)
{
	u64 address;

	return !read_user(&address, sizeof(address), call->caller.sp - sizeof(u64)) ||
	       address == call->caller.ip;
}

// What the current thread will find when it leaves the allocator that it is in; NULL: in none.
static __always_inline struct registers *caller_of_allocator(void)
{
	u64 thread = bpf_get_current_pid_tgid();
	struct call *call = bpf_map_lookup_elem(&calls, &thread);

	return call && is_in_progress(call) ? &call->caller : NULL;
}

static __always_inline bool asked_for(void)
{
	u32 tgid, tid;

	own_numbers(bpf_get_current_pid_tgid(), true, &tgid, &tid);
	return !(own_tgid && tgid == own_tgid) && listed(tgid, tid) && in_scope();
}

// A function begins. True: inside of the allocator that the thread is in, or that one has jumped to
// it. An allocator ended without a return if the stack is less deep, or as deep without a jump.
static __always_inline bool is_inside(struct registers *ctx, u64 thread, struct stats *st)
{
	struct call *outer = bpf_map_lookup_elem(&calls, &thread);
	u64 place;

	if (!outer)
		return false;
	place = outer->caller.sp - sizeof(u64);
	if (ctx->sp < place && is_in_progress(outer))
		return true;
	if (ctx->sp == place && outer->asked.has_jumped) {
		outer->asked.has_jumped = 0;
		return true;
	}
	COUNT(st, returns_missed);
	return false;
}

// The thread enters an allocator.
static __always_inline void begin(struct registers *ctx, struct call *call, struct stats *st)
{
	u64 thread = bpf_get_current_pid_tgid();

	if (!asked_for() || is_inside(ctx, thread, st))
		return;
	call->caller = *ctx;
	bpf_probe_read_user(&call->caller.ip, sizeof(u64), (void *)ctx->sp);
	call->caller.sp += sizeof(u64);
	if (call->asked.pointer && call->asked.function != POSIX_MEMALIGN)
		call->asked.was_followed = remove(call->asked.pointer, &call->asked.old);
	if (bpf_map_update_elem(&calls, &thread, call, BPF_ANY))
		COUNT(st, calls_full);
}

static __always_inline void pass_through(struct registers *ctx, struct stats *st)
{
	u64 thread = bpf_get_current_pid_tgid();

	if (bpf_map_lookup_elem(&calls, &thread) && !is_inside(ctx, thread, st))
		bpf_map_delete_elem(&calls, &thread);
}

static __always_inline int enter_function(struct registers *ctx)
{
	u64 cookie = bpf_get_attach_cookie(ctx);
	u64 first = WORD(ctx, offsetof(struct registers, di));
	u64 second = WORD(ctx, offsetof(struct registers, si));
	u64 third = WORD(ctx, offsetof(struct registers, dx));
	struct call call = {.asked = {.function = (u8)cookie}};
	struct stats *st = stats_here();
	struct allocation was;

	if (!phase || !st)
		return 0;
	if (cookie & BEHIND_HEAP) {
		first = second;
		second = third;
		third = WORD(ctx, offsetof(struct registers, cx));
	}
	call.asked.bytes = first;
	switch (call.asked.function) {
	case PASSED_THROUGH:
		pass_through(ctx, st);
		return 0;
	case DESTROY_HEAP:
		if (asked_for())
			COUNT(st, heaps_destroyed);
		return 0;
	case FREE:
		if (first && remove(first, &was))
			COUNT(st, frees);
		return 0;
	case CALLOC:
		call.asked.bytes = first * second;
		break;
	case ALIGNED_ALLOC:
		call.asked.bytes = second;
		break;
	case POSIX_MEMALIGN:
		call.asked.bytes = third;
		call.asked.pointer = first;
		break;
	case REALLOC_ARRAY:
		call.asked.function = REALLOC;
		second *= third;
		// fallthrough
	case REALLOC:
	case RESIZE:
		call.asked.bytes = second;
		call.asked.pointer = first;
		break;
	}
	begin(ctx, &call, st);
	return 0;
}

// The address that an allocator gives, by what it returns; 0: none.
static __always_inline u64 address_of(u64 result, struct asked *call)
{
	u64 address = 0;

	if (call->function == RESIZE)
		return result < call->bytes ? 0 : call->pointer;
	if (call->function != POSIX_MEMALIGN)
		return result;
	if ((u32)result || bpf_probe_read_user(&address, sizeof(address), (void *)call->pointer))
		return 0;
	return address;
}

static __always_inline void end(struct registers *ctx, u64 result, struct asked *call,
				struct stats *st)
{
	struct allocation allocation = {.bytes = call->bytes};
	struct origin from = {.registers = ctx, .at_return = true};
	u64 address = address_of(result, call);

	if (call->function == COPY_TEXT) {
		COUNT(st, texts_copied);
		return;
	}
	if (!address) {
		if (call->function == REALLOC && !call->bytes)
			return; // that frees
		COUNT(st, failed);
		if (call->was_followed && !enter(call->pointer, &call->old, st))
			count_freed(&call->old, -1);
		return;
	}
	if (call->was_followed)
		COUNT(st, frees);
	if (!wanted(&allocation.site, ALLOCATED, st))
		return;
	allocation.site.user_stack = stack_here(ctx, &from, allocation.site.tgid, st);
	COUNT(st, allocations);
	if (add_to_site(&allocation.site, allocation.bytes, st))
		enter(address, &allocation, st);
}

// The end of any of them but free, at an instruction that returns, with the return address at the
// stack pointer. That of what it calls inside has the stack deeper.
static __always_inline int leave_function(struct registers *ctx)
{
	u64 thread = bpf_get_current_pid_tgid();
	struct call *begun = bpf_map_lookup_elem(&calls, &thread);
	struct stats *st = stats_here();

	if (!begun || !st || ctx->sp + sizeof(u64) != begun->caller.sp)
		return 0;
	if (phase) // without a copy: verifiers allow 512 bytes of stack with what is called
		end(ctx, ctx->ax, &begun->asked, st);
	bpf_map_delete_elem(&calls, &thread);
	return 0;
}

// A function is about to go on in another one, at the same place of the stack.
static __always_inline int jump_on(struct registers *ctx)
{
	u64 thread = bpf_get_current_pid_tgid();
	struct call *begun = bpf_map_lookup_elem(&calls, &thread);

	if (begun && ctx->sp + sizeof(u64) == begun->caller.sp &&
	    is_taken(ctx->flags, bpf_get_attach_cookie(ctx)))
		begun->asked.has_jumped = 1;
	return 0;
}

// calloc jumps to memset, in another file, which returns its first argument.
static __always_inline int clear_on(struct registers *ctx)
{
	u64 thread = bpf_get_current_pid_tgid();
	struct call *begun = bpf_map_lookup_elem(&calls, &thread);
	struct stats *st = stats_here();

	if (!begun || !st || ctx->sp + sizeof(u64) != begun->caller.sp ||
	    begun->asked.function != CALLOC)
		return 0;
	if (phase)
		end(ctx, ctx->di, &begun->asked, st);
	bpf_map_delete_elem(&calls, &thread);
	return 0;
}

#endif
