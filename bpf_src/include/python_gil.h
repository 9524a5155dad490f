// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Python's GIL, as the current thread sees it. See docs/python.md.
//
// CPython builds it of a mutex and a condition variable inside one struct (Python/ceval_gil.c): a
// thread that sleeps in futex(2) on an address inside of that waits for the GIL, and no other one
// does. musl's condition variables have a waiter sleep on an address of its own stack instead:
// there, waits for the GIL are not told from others.
#ifndef PYTHON_GIL_H
#define PYTHON_GIL_H

#include "python_frames.h"
#include "user_registers.h"

// futex(2): arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h
#define CALL_FUTEX (arm64_code_bits ? 98 : 202)

enum gil_wait {
	WAITS_FOR_OTHERS = 0, // what gil_waited_for() says, or who holds it
	HOLDER_UNKNOWN = ~0U,
};

struct thread_key {
	u64 generation; // of the process entry
	u64 state;	// address of the thread state
};

// Numbers of threads: Python knows them by the address of their state.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct thread_key);
	__type(value, u32);
} python_threads SEC(".maps");

static __always_inline u64 gil_of(struct python_process *layout, u64 state)
{
	if (layout->gil)
		return layout->gil;
	return user_word(user_word(state + layout->thread_interpreter) +
			 layout->gil_in_interpreter);
}

static __always_inline struct python_process *python_of(u32 process, u64 identity)
{
	struct python_process *layout = bpf_map_lookup_elem(&pythons, &process);

	if (!layout || !layout->gil_size || (layout->identity && layout->identity != identity))
		return NULL;
	return layout;
}

// Whether the current thread holds the GIL of its interpreter.
__noinline int holds_gil(u32 process, u64 identity)
{
	struct python_process *layout = python_of(process, identity);
	u64 state, gil;

	if (!layout)
		return 0;
	state = thread_state(layout);
	if (!state)
		return 0;
	gil = gil_of(layout, state);
	return user_half(gil + layout->gil_locked) == 1 &&
	       user_word(gil + layout->gil_holder) == state;
}

// What the current thread, of number `tid`, waits for in futex(2) on an address; 0 for an address:
// it is elsewhere. An enum gil_wait, or the number of the thread that holds the GIL.
__noinline u32 gil_waited_for(u32 process, u64 identity, u64 address, u32 tid)
{
	struct python_process *layout = python_of(process, identity);
	struct thread_key key = {};
	u32 *known;
	u64 gil;

	if (!layout)
		return WAITS_FOR_OTHERS;
	key.generation = layout->generation;
	key.state = thread_state(layout);
	if (!key.state)
		return WAITS_FOR_OTHERS;
	known = bpf_map_lookup_elem(&python_threads, &key);
	if (!known || *known != tid)
		bpf_map_update_elem(&python_threads, &key, &tid, BPF_ANY);
	if (!address)
		return WAITS_FOR_OTHERS;
	gil = gil_of(layout, key.state);
	if (address - gil >= layout->gil_size)
		return WAITS_FOR_OTHERS;
	if (user_half(gil + layout->gil_locked) != 1)
		return HOLDER_UNKNOWN;
	key.state = user_word(gil + layout->gil_holder);
	known = bpf_map_lookup_elem(&python_threads, &key);
	return known && *known ? *known : HOLDER_UNKNOWN;
}

#endif
