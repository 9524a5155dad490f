// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Which calls of a wanted task are asked for.
#ifndef SUMMARY_WANTED_H
#define SUMMARY_WANTED_H

#include "cpus.h"
#include "records.h"
#include "targets.h"

#define CALL_BITS 576 // numbers of each ABI that --syscall can name

CONFIG bool has_filters = false; // any of the following, a cgroup, or the CPUs that calls end on
CONFIG bool only_failed = false;
CONFIG u32 only_errno = 0; // only calls that failed with it
CONFIG bool has_uid = false;
CONFIG u32 uid = 0;
CONFIG bool has_calls = false;
CONFIG u64 calls[3][CALL_BITS / 64] = {}; // native, compat, x32

static __always_inline bool call_wanted(u32 nr, u32 abi)
{
	u32 word;

	if (nr & X32_BIT) {
		abi = 2;
		nr &= ~X32_BIT;
	}
	word = nr / 64;
	if (word >= CALL_BITS / 64)
		return false;
	return calls[abi][word] >> (nr % 64) & 1;
}

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
	if (has_uid && (u32)bpf_get_current_uid_gid() != uid)
		return false;
	return in_cgroup();
}

#endif
