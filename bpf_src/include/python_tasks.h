// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The tasks of asyncio that await the one that the current thread runs, and their coroutines.
// CPython 3.14 and later: there a thread's state has the task, and a task what awaits it.
// See docs/design/0011-python-frames.md.
//
// Behind the words of the thread's own frames come, for each task that awaits the one before, a mark
// and a word for each of its coroutines, the outermost first: user space puts them in their place.
// Nothing is added unless the task's own coroutine is one of the thread's frames.
#ifndef PYTHON_TASKS_H
#define PYTHON_TASKS_H

#include "python_code.h"

#define MARK_CODE 0xFFFFFFE // even, and more than any number
#define TASK_STRIDE 16
#define TASK_STEPS 128 // of coroutines, wrappers, futures and tasks
#define OBJECT_TYPE 8  // in an object, a type, a set, and in what wraps a coroutine
#define TYPE_NAME 24
#define HEAP_TYPE (1 << 9)
#define SET_USED 24 // then the mask of its table, and that
#define SET_SLOTS 8
#define WRAPPED 16
#define MOST_BASES 4

enum mark {
	AWAITED_BY_TASK = 1, // its coroutines follow
	AWAITED_BY_SEVERAL = 2,
	AWAITED_BY_MORE = 3,	// than there is room for
	AWAITED_BY_UNKNOWN = 4, // could not be read
};

enum awaitable {
	OTHER_OBJECT = 0,
	HAS_FRAME = 1, // a coroutine, a generator, an asynchronous one
	IS_WRAPPER = 2,
	UNREADABLE = 3,
};

// Offsets as in purebpf/runtimes/cpython/task_layout.py. Of the states of a frame, those of what is suspended
// are `suspended` and the next ones, and all of these but the first await something.
struct python_tasks {
	u64 generation;	  // of struct python_process
	__u16 running;	  // in the thread state
	__u16 coroutine;  // in a task
	__u16 awaited_by; // in a task or future
	__u16 is_task;
	__u16 is_set;
	__u16 type_base;
	__u16 type_flags;
	__u16 coroutine_frame;
	__u16 coroutine_state;
	__u16 frame_top;
	u8 suspended;
	u8 suspended_states;
	u8 top_words; // of a frame's stack, where the last may be what it awaits
	u8 pad;
};

struct python_task_walk {
	struct python_tasks layout;
	u64 awaited;   // a task or future
	u64 coroutine; // of the task, to look at next; 0: none
	u64 type;      // that was looked at last
	u32 kind;      // enum awaitable of `type`
	u8 byte;       // that was read: Linux 6.1 counts 32 bytes of stack for one, and has 512
	u8 pad[3];
};

CONFIG bool python_async = false;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u32); // as of `pythons`
	__type(value, struct python_tasks);
} python_tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PYTHON_PLACES);
	__type(key, u32);
	__type(value, struct python_task_walk);
} python_task_walks SEC(".maps");

// The last word of a stack.
static __always_inline int put_mark(struct python_walk *walk, u64 mark)
{
	u32 depth = walk->depth;

	OPAQUE(depth);
	if (depth >= PYTHON_FRAMES)
		return 0;
	walk->words[depth] = PYTHON_TAG | (u64)MARK_CODE << CODE_SHIFT | mark << 8 |
			     (walk->task_depth & 0xFF);
	walk->depth = depth + 1;
	return 0;
}

// By the names of CPython's own types: their addresses are symbols of which some builds have none.
static __always_inline u32 kind_of_name(u64 *name)
{
	u64 mask = 0xFFFF;

	if (name[0] == 0x6e6974756f726f63) {  // coroutin
		if ((name[1] & mask) == 0x65) // e
			return HAS_FRAME;
		return name[1] == 0x6570706172775f65 ? IS_WRAPPER : OTHER_OBJECT; // e_wrappe
	}
	if (name[0] == 0x6f746172656e6567)				    // generato
		return (name[1] & mask) == 0x72 ? HAS_FRAME : OTHER_OBJECT; // r
	if (name[0] != 0x65675f636e797361)				    // async_ge
		return OTHER_OBJECT;
	if (name[1] == 0x00726f746172656e) // nerator
		return HAS_FRAME;
	if (name[1] != 0x5f726f746172656e) // nerator_
		return OTHER_OBJECT;
	if ((name[2] & 0xFFFFFFFFFFFF) == 0x646e657361 ||   // asend
	    (name[2] & 0xFFFFFFFFFFFFFF) == 0x776f72687461) // athrow
		return IS_WRAPPER;
	return OTHER_OBJECT;
}

// enum awaitable of an object.
__noinline int awaitable_kind(u32 place, u64 object)
{
	struct python_task_walk *tasks;
	u64 type, flags, at, name[3];

	if (!python_async) // first: Linux 6.1 looks at what is not called, too
		return UNREADABLE;
	tasks = bpf_map_lookup_elem(&python_task_walks, &place);
	if (!tasks)
		return UNREADABLE;
	if (!read_word(&type, object + OBJECT_TYPE))
		return UNREADABLE;
	if (type == tasks->type)
		return tasks->kind;
	if (!read_word(&flags, type + tasks->layout.type_flags) ||
	    !read_word(&at, type + TYPE_NAME) ||
	    bpf_probe_read_user(name, sizeof(name), (void *)at))
		return UNREADABLE;
	tasks->type = type;
	tasks->kind = flags & HEAP_TYPE ? OTHER_OBJECT : kind_of_name(name);
	return tasks->kind;
}

// Whether an object is a task of _asyncio, or of a class that derives from it.
static __noinline int is_asyncio_task(u32 place, u64 object)
{
	struct python_task_walk *tasks = bpf_map_lookup_elem(&python_task_walks, &place);
	u64 type, at, name[2];

	if (!tasks)
		return 0;
	type = user_word(object + OBJECT_TYPE);
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < MOST_BASES; i++) {
		OPAQUE(i);
		if (!type || !read_word(&at, type + TYPE_NAME) ||
		    bpf_probe_read_user(name, sizeof(name), (void *)at))
			return 0;
		if (name[0] == 0x6f69636e7973615f &&		// _asyncio
		    (name[1] & 0xFFFFFFFFFFFF) == 0x6b7361542e) // .Task
			return 1;
		type = user_word(type + tasks->layout.type_base);
	}
	return 0;
}

// The first frame of the task that a thread's state says it runs goes into the walk of the place, for
// python_step() to look out for. The states of a thread that waits between two tasks, or runs what is
// no task, have none.
static __noinline int find_task(u32 place, u32 process, u64 state)
{
	struct python_walk *walk = bpf_map_lookup_elem(&python_walks, &place);
	struct python_task_walk *tasks = bpf_map_lookup_elem(&python_task_walks, &place);
	struct python_tasks *layout = bpf_map_lookup_elem(&python_tasks, &process);
	u64 task, coroutine;

	if (!walk || !tasks)
		return 0;
	walk->task_frame = 0;
	walk->task_depth = 0;
	if (!layout || layout->generation != walk->layout.generation)
		return 0;
	tasks->layout = *layout;
	tasks->type = 0;
	tasks->coroutine = 0;
	task = user_word(state + layout->running);
	if (!task || !is_asyncio_task(place, task))
		return 0;
	tasks->awaited = task;
	coroutine = user_word(task + layout->coroutine);
	if (coroutine)
		walk->task_frame = coroutine + layout->coroutine_frame;
	return 0;
}

// The only element of a set; 0: it has several, is too large, or cannot be read.
static __always_inline u64 only_element(struct python_walk *walk, u64 set, u64 *used)
{
	u64 found = 0, head[3];
	u64 *slots = walk->code_fields;

	if (bpf_probe_read_user(head, sizeof(head), (void *)(set + SET_USED))) {
		*used = 1;
		return 0;
	}
	*used = head[0];
	if (head[0] != 1 || head[1] != SET_SLOTS - 1 ||
	    bpf_probe_read_user(slots, 2 * SET_SLOTS * sizeof(u64), (void *)head[2]))
		return 0;
#pragma clang loop unroll(full)
	for (u32 i = 0; i < SET_SLOTS; i++)
		if (slots[2 * i] && slots[2 * i + 1] != ~0ull) // else of what was removed
			found = slots[2 * i];
	return found;
}

// Goes on to what awaits a task or future; 0: nothing, or a mark says why not.
__noinline int awaiter_step(u32 place)
{
	struct python_task_walk *tasks;
	struct python_walk *walk;
	struct python_tasks *layout;
	u64 awaiter, used = 1, coroutine;
	u8 is_set, is_task, state;

	if (!python_async) // first: Linux 6.1 looks at what is not called, too
		return 0;
	walk = bpf_map_lookup_elem(&python_walks, &place);
	tasks = bpf_map_lookup_elem(&python_task_walks, &place);
	if (!walk || !tasks)
		return 0;
	layout = &tasks->layout;
	if (!read_word(&awaiter, tasks->awaited + layout->awaited_by) ||
	    !read_byte(&is_set, tasks->awaited + layout->is_set))
		return put_mark(walk, AWAITED_BY_UNKNOWN);
	if (!awaiter)
		return 0;
	if (is_set)
		awaiter = only_element(walk, awaiter, &used);
	if (!used)
		return 0;
	if (used > 1)
		return put_mark(walk, AWAITED_BY_SEVERAL);
	if (!awaiter || !read_byte(&is_task, awaiter + layout->is_task))
		return put_mark(walk, AWAITED_BY_UNKNOWN);
	tasks->awaited = awaiter;
	if (!is_task)
		return 1;
	if (!read_word(&coroutine, awaiter + layout->coroutine))
		return put_mark(walk, AWAITED_BY_UNKNOWN);
	if (!coroutine)
		return 0;
	if (awaitable_kind(place, coroutine) == HAS_FRAME) {
		if (!read_byte(&state, coroutine + layout->coroutine_state))
			return put_mark(walk, AWAITED_BY_UNKNOWN);
		// Other coroutines have ended, or are among the thread's own frames.
		state -= layout->suspended;
		if (state >= layout->suspended_states)
			return 0;
	}
	if (walk->depth >= PYTHON_FRAMES - 1)
		return put_mark(walk, AWAITED_BY_MORE);
	put_mark(walk, AWAITED_BY_TASK);
	tasks->coroutine = coroutine;
	return 1;
}

// What a suspended frame awaits; 0: it could not be read.
__noinline u64 awaited_object(u32 place, u64 frame)
{
	struct python_task_walk *tasks;
	u64 top, object;

	if (!python_async) // first: Linux 6.1 looks at what is not called, too
		return 0;
	tasks = bpf_map_lookup_elem(&python_task_walks, &place);
	if (!tasks)
		return 0;
	if (!read_word(&top, frame + tasks->layout.frame_top) || top <= frame)
		return 0;
	object = user_word(top - sizeof(u64)) & ~STACK_REF_TAG;
	if (tasks->layout.top_words == 1)
		return object;
	if (object) {
		u32 kind = awaitable_kind(place, object);

		if (kind == HAS_FRAME || kind == IS_WRAPPER)
			return object;
	}
	return user_word(top - 2 * sizeof(u64)) & ~STACK_REF_TAG;
}

// Keeps the frame of a coroutine, and goes on to what it awaits; 0: a mark says why not.
__noinline int coroutine_step(u32 place)
{
	struct python_walk *walk = bpf_map_lookup_elem(&python_walks, &place);
	struct python_task_walk *tasks = bpf_map_lookup_elem(&python_task_walks, &place);
	u64 at, code;
	u32 kind, depth;

	if (!python_async || !walk || !tasks)
		return 0;
	at = tasks->coroutine;
	tasks->coroutine = 0;
	kind = awaitable_kind(place, at);
	if (kind == OTHER_OBJECT)
		return 1;
	if (kind == IS_WRAPPER && read_word(&tasks->coroutine, at + WRAPPED))
		return 1;
	if (kind != HAS_FRAME || !read_byte(&tasks->byte, at + tasks->layout.coroutine_state))
		return put_mark(walk, AWAITED_BY_UNKNOWN);
	tasks->byte -= tasks->layout.suspended;
	at += tasks->layout.coroutine_frame;
	if (tasks->byte >= tasks->layout.suspended_states ||
	    !read_fields(walk->frame_fields, walk->layout.frame_size, at))
		return put_mark(walk, AWAITED_BY_UNKNOWN);
	code = field(walk->frame_fields, walk->layout.frame_code) & ~STACK_REF_TAG;
	if (code != walk->code) {
		walk->number = code_number(place, code);
		walk->code = code;
	}
	depth = walk->depth;
	OPAQUE(depth);
	if (depth >= PYTHON_FRAMES - 1)
		return put_mark(walk, AWAITED_BY_MORE);
	walk->words[depth] = PYTHON_TAG | (u64)walk->number << CODE_SHIFT |
			     instruction_of(walk, code);
	walk->depth = depth + 1;
	if (!tasks->byte)
		return 1;
	tasks->coroutine = awaited_object(place, at);
	return tasks->coroutine ? 1 : put_mark(walk, AWAITED_BY_UNKNOWN);
}

// A number of steps; 0: there are no more.
__noinline int take_task_steps(u32 place)
{
	struct python_task_walk *tasks;
	int more = 1;

	if (!python_async) // first: Linux 6.1 looks at what is not called, too
		return 0;
	tasks = bpf_map_lookup_elem(&python_task_walks, &place);
	if (!tasks)
		return 0;
#pragma clang loop unroll(disable)
	for (u32 taken = 0; taken < TASK_STRIDE; taken++) {
		OPAQUE(taken);
		more = tasks->coroutine ? coroutine_step(place) : awaiter_step(place);
		if (!more)
			break;
	}
	return more;
}

// Adds the tasks that await the one that find_task() found, if its frame is one of the thread's.
static __noinline int walk_tasks(u32 place)
{
	struct python_walk *walk = bpf_map_lookup_elem(&python_walks, &place);
	struct python_stats *st = bpf_map_lookup_elem(&python_stats, &place);
	u32 depth;
	int more = 0;

	if (!walk || !st || !walk->task_depth || walk->is_cut)
		return 0;
	depth = walk->depth;
#pragma clang loop unroll(disable)
	for (u32 taken = 0; taken < TASK_STEPS; taken += TASK_STRIDE) {
		OPAQUE(taken);
		more = take_task_steps(place);
		if (!more)
			break;
	}
	if (more)
		put_mark(walk, AWAITED_BY_MORE);
	if (walk->depth > depth)
		st->python_awaited++;
	return 0;
}

// How many frames of a stack are kept. The marks of tasks have 8 bits for a depth.
static __always_inline u32 python_room(void)
{
	return python_deep && !python_async ? DEEP_PYTHON_FRAMES : PYTHON_FRAMES;
}

#endif
