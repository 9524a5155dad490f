// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Which calls of a wanted task are asked for.
#ifndef SUMMARY_WANTED_H
#define SUMMARY_WANTED_H

#include "call_set.h"
#include "cpus.h"
#include "records.h"
#include "targets.h"

CONFIG bool has_filters =
	false; // any of the following, a cgroup, a user, or the CPUs that calls end on
CONFIG bool only_failed = false;
CONFIG u32 only_errno = 0; // only calls that failed with it

static __always_inline bool return_wanted(struct task_state *state, u32 errno_value)
{
	if (only_failed && !errno_value)
		return false;
	if (only_errno && errno_value != only_errno)
		return false;
	if (has_calls && !call_wanted(state->nr, state->abi & 1))
		return false;
	if (has_cpus && !cpu_wanted(bpf_get_smp_processor_id()))
		return false;
	return in_scope();
}

#endif
