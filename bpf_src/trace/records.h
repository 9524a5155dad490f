// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What is kept of a call while it lasts, and sent when it ends.
#ifndef TRACE_RECORDS_H
#define TRACE_RECORDS_H

#include "call_set.h"
#include "events.h"

typedef __u16 u16;
typedef __s32 s32;

// Bytes for the memory that arguments point to; purebpf/tools/trace/capture.py has this number, too.
#define CAPTURE_ROOM 6144

enum kind {
	CALL = 0,   // struct call, and what was captured
	EXITED = 1, // struct exited: a thread ended
	SIGNAL = 2, // struct signal: one is delivered
	POINT = 3,  // struct point, and the record of a tracepoint
};

enum ending {
	RETURNED = 0,
	UNFINISHED = 1, // the thread ended in it
	IN_FLIGHT = 2,	// it was open when the run ended
};

// How far a call has come.
enum progress {
	CLOSED = 0,
	OPEN = 1,    // it lasts, and is wanted
	UNASKED = 2, // it lasts, and is not wanted: its return is no surprise
	STOPPED = 3, // a tracer has stopped it before its tracepoint; `nr` is known
};

// Behind it: `used` bytes, each piece with a struct piece before it, at a multiple of 8.
struct call {
	struct event event; // of its end, but that `time_ns` is when it began
	u64 duration_ns;
	s64 result;
	u64 arguments[6];
	u32 nr;
	u8 abi;
	u8 ending;
	u8 open;       // enum progress
	u8 is_awaited; // by the process that is to execute the command: wanted if that succeeds
	u16 missed;    // which arguments could not be read at the start, as bits
	u8 entered;    // 0: only its return was seen, and `time_ns` is of that
	u8 pad;
	u32 used;
	u64 lost;  // calls that were dropped until now, in the whole run
	u64 stack; // of user space when it began: bpf_src/call_stacks.bpf.c; 0: not asked for
	char caller[TASK_COMM_LEN]; // the comm of that time, where there is a stack
};

struct piece {
	u32 id;
	u32 size;
};

struct exited {
	struct event event;
	u32 code; // as wait(2) has it
	u32 pad;
};

struct signal {
	struct event event;
	u32 number;
	s32 code;
	s32 error;
	u32 pad;
	s32 fields[6]; // of the union in siginfo_t
};

#define POINT_ROOM 2048 // bytes of the record of a tracepoint

// Behind it: `size` bytes, as the tracepoint's file `format` describes them.
struct point {
	struct event event;
	u64 lost;   // as in struct call, but with tracepoints
	u32 number; // among those that are asked for
	u32 size;
	u64 stack; // of user space, and of the kernel: bpf_src/call_stacks.bpf.c; 0: not asked for
	u64 kernel_stack;
};

// Programs of a tracepoint jump from one to the next, by their numbers in `then_point`.
enum point_step {
	POINT_WANTED = 0,  // send_point() asks whether the task is wanted
	POINT_STACKED = 1, // stack_point() walks stacks, where they are asked for
	POINT_SENT = 2,	   // send_stacked_point()
	POINT_STEPS = 3,
};

struct call *anchor_call; // keep the types in BTF
struct exited *anchor_exited;
struct signal *anchor_signal;
struct point *anchor_point;

struct task_state {
	struct call call;
	u8 pieces[CAPTURE_ROOM];
};

struct point_state {
	struct point point;
	u8 record[POINT_ROOM];
};

// The kernel runs one program of a tracepoint at a time on a CPU.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct point_state);
} points SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, POINT_STEPS);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} then_point SEC(".maps");

#define SPARE_STATES 64
#include "task_state.h"

#endif
