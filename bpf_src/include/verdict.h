// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What becomes of a task's events. It is decided once, when the task is the current one, and kept
// in its state.
#ifndef VERDICT_H
#define VERDICT_H

#include "targets.h"

enum verdict {
	UNDECIDED = 0,
	ADOPTED = 1, // as UNDECIDED, but wanted for the sake of its parent
	WANTED = 2,
	UNWANTED = 3,
	AWAITED = 4, // the command, until its execve succeeds
};

CONFIG u32 own_tgid = 0;      // who is asking: left out; 0: nobody is
CONFIG u32 command_tgid = 0;  // the command to run: from its execve on
CONFIG bool has_tree = false; // what the wanted tasks start from now on is wanted, too

CONFIG bool has_names = false; // processes enter `tgids` and leave it as their names change

static __always_inline bool decided(u8 verdict)
{
	return verdict >= WANTED;
}

// Whether to judge (again) before the verdict is used. A task gets a name while it runs, so what it
// was when it left its CPU holds until it comes back.
static __always_inline bool needs_verdict(u8 verdict)
{
	return has_names || !decided(verdict);
}

// The verdict on a task with these numbers, which had none but `before`.
static __always_inline u8 judge(u8 before, u32 tgid, u32 tid)
{
	if (before == ADOPTED)
		return WANTED;
	if (own_tgid && tgid == own_tgid)
		return UNWANTED;
	if (command_tgid)
		return tgid == command_tgid ? AWAITED : UNWANTED;
	return listed(tgid, tid) ? WANTED : UNWANTED;
}

// With --tree and a command, children from now on are what their parents are.
static __always_inline bool children_follow(void)
{
	return has_tree || command_tgid;
}

#endif
