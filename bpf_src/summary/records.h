// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What is kept of tasks and their calls, and what goes missing.
#ifndef SUMMARY_RECORDS_H
#define SUMMARY_RECORDS_H

#include "call_abi.h"
#include "histogram.h"
#include "task.h"

typedef __u16 u16;

enum mode {
	MODE_TOTAL = 0,
	MODE_THREAD = 1,
	MODE_PROCESS = 2,
	MODE_CGROUP = 3,
};

// What is known of a task. Times are nanoseconds of CLOCK_MONOTONIC.
struct task_state {
	u64 start_ns; // when the call that is open was entered; 0: none is
	u64 group;    // whose row it counts in: the id, and in the upper half when that one began
	u64 task;     // whose state it is, as addresses; in `running` only, where 0 is nobody's
	u64 regs;
	u32 tgid; // in the pid namespace of who asks, once it is decided
	u32 tid;
	u32 nr;
	u8 abi; // and STOPPED
	u8 verdict;
	u8 newborn; // it has yet to return from the call that made it
	u8 changed; // in `running`: there is more than `tasks` knows
};

#define STOPPED 0x80 // a tracer has stopped it in the call `nr`, before its tracepoint

#define SPARE_STATES 4096
#include "task_state.h"

struct row_key {
	u64 group;
	u32 nr;
	u16 cpu; // 0 where a group is a thread, which is its row's only writer
	u8 abi;
	u8 epoch;
};

struct error_key {
	struct row_key row;
	u32 errno_value;
	u32 pad;
};

struct statistics {
	u64 calls;
	u64 errors;
	u64 untimed; // of the calls, those whose entry was not seen; times are of the others
	u64 total_ns;
	u64 min_ns;
	u64 max_ns;
	u64 squares_low; // sum of squared nanoseconds, 128 bits
	u64 squares_high;
};

struct histogram {
	u64 buckets[BUCKETS];
};

// What the tables do not say, in calls except where it says tasks. Rarely written, so atomically.
struct losses {
	u64 open_at_start;     // open when the run began; seen to return, and counted
	u64 unpaired;	       // seccomp or a tracer refused them before their entry; counted
	u64 unnamed;	       // the same, but a tracer has replaced the number: in no row
	u64 exits;	       // exit and exit_group, which do not return
	u64 died;	       // the task died inside another call
	u64 unreturned;	       // calls whose return was not seen
	u64 tid_changed;       // execve by a thread that took over its process's number
	u64 states_full;       // starts that found no place
	u64 rows_full;	       // calls that found no row
	u64 errors_full;       // failed calls that are counted, but not by errno
	u64 histograms_full;   // calls that are counted, but not in a histogram
	u64 names_full;	       // tasks without a place for their name
	u64 follow_full;       // new tasks that could not be followed
	u64 clock_backwards;   // calls that seem to end before they began: counted, with 0 ns
	u64 switches_missed;   // calls that are lost, as a switch to another task was not traced
	u64 outside_namespace; // wanted tasks without a pid in our pid namespace
};

CONFIG u32 mode = MODE_TOTAL;

struct losses losses = {};

#define COUNT(field) __sync_fetch_and_add(&losses.field, 1)

#endif
