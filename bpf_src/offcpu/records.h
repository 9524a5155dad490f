// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What is kept of tasks and their times, and what is sent.
#ifndef OFFCPU_RECORDS_H
#define OFFCPU_RECORDS_H

// The switch, the wake-up, the sample and the list may interrupt one another.
#define PLACES 3
#include "task.h"
#include "user_stacks.h"
#include "python_gil.h"

#define SWITCH_PLACE 0 // and wake-ups: both have interrupts off
#define SAMPLE_PLACE 1
#define LIST_PLACE 2

enum place {
	UNSEEN = 0, // since before the run began
	ON_CPU = 1,
	OFF_CPU = 2,
	ASIDE = 3, // off the CPU in a state that was not asked for, or dead
};

// Why a task is not running: TASK_* of the kernel's sched.h, one each.
enum state {
	STATE_RUNNING = 0, // preempted, or waiting for its first run
	STATE_SLEEPING = 1,
	STATE_DISK = 2, // uninterruptible
	STATE_IDLE = 3,
	STATE_STOPPED = 4,
	STATE_TRACED = 5,
	STATE_PARKED = 6,
	STATE_WAKING = 7, // before Linux 5.18: a wake-up was faster than the tracepoint
	STATE_BEFORE = 8, // off since before the run began: the list at the start says why
	STATE_ON_CPU = 9,
	STATE_GIL = 10, // sleeping, for Python's lock
	STATE_DEAD = 11,
};

// A global function: the verifier walks through it once, and not on with each of its answers.
__noinline u32 state_from(u64 bits)
{
	if (!bits)
		return STATE_RUNNING;
	if (bits & TASK_IS_DEAD)
		return STATE_DEAD;
	if (bits & TASK_STOPPED)
		return STATE_STOPPED;
	if (bits & TASK_TRACED)
		return STATE_TRACED;
	if (bits & TASK_PARKED)
		return STATE_PARKED;
	if (bits & TASK_INTERRUPTIBLE)
		return STATE_SLEEPING;
	if (bits & TASK_UNINTERRUPTIBLE)
		return bits & TASK_NOLOAD ? STATE_IDLE : STATE_DISK;
	if (bits & TASK_WAKING)
		return STATE_WAKING;
	return STATE_DISK; // TASK_RTLOCK_WAIT, TASK_FROZEN: only the right event ends them
}

// Where a time goes.
struct sum_key {
	u64 user_stack;
	u64 kernel_stack;
	u64 waker_user_stack;
	u64 waker_kernel_stack;
	u32 tgid;
	u32 tid;
	u32 waker_tgid;
	u32 waker_tid;
	char comm[TASK_COMM_LEN];
	char waker_comm[TASK_COMM_LEN];
	u32 state;
	u32 holder; // of the GIL, when the wait began: a thread; 0: not known
};

struct sum {
	u64 count;
	u64 blocked_ns;	 // until it was woken; in state ON_CPU: running
	u64 runnable_ns; // from then on, or from a preemption on; all of it is in blocked_ns where
			 // wake-ups are not traced
};

// A time at or above the threshold.
struct direct_sample {
	u64 ended_ns;
	u64 blocked_ns;
	u64 runnable_ns;
	u32 cpu;
	u32 pad;
	struct sum_key key;
};

// What is known of a task. Times are nanoseconds of CLOCK_MONOTONIC.
struct task_state {
	u64 since_ns;	// when it came to where it is
	u64 waking_ns;	// when it was last woken since it last ran
	u64 pending_ns; // how long it was off before it could be judged, up to since_ns
	u64 pending_waking_ns;
	struct sum_key key;
	u32 cpu; // that it left
	u8 verdict;
	u8 place;
	u8 pending_state;
	u8 pad;
};

#include "task_state.h"

struct sample_key {
	u64 user_stack;
	u64 kernel_stack;
	u32 tgid;
	u32 tid;
	char comm[TASK_COMM_LEN];
};

// One event per line, in times that a thread was off the CPU except where it says otherwise.
struct stats {
	u64 switches;	       // the program ran
	u64 run_time_ns;       // spent in it, at `timed` of them
	u64 timed;	       //
	u64 counted;	       // in `sums`
	u64 direct;	       // in `direct_samples`
	u64 filtered;	       // shorter than min_ns or longer than max_ns
	u64 sums_full;	       // `sums` had no place
	u64 ring_full;	       // `direct_samples` had no place: it is in `sums`
	u64 storage_failed;    // switches of a task that found no place for its state
	u64 births_missed;     // tasks that were not seen to begin, so that none was followed
	u64 switches_missed;   // a task left, or came, without a switch that was traced
	u64 clock_backwards;   // counted with 0 ns
	u64 outside_namespace; // times a wanted task had no pid in our pid namespace
	u64 samples;	       // in `samples`
	u64 samples_full;      // samples that found no place
	u64 samples_aside;     // samples of what was not asked for
};

#endif
