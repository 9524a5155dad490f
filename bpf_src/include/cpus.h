// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// On which CPUs: -C.
#ifndef CPUS_H
#define CPUS_H

#include "purebpf.h"

#define MAX_CPUS 4096

CONFIG bool has_cpus = false; // only on these
CONFIG u64 cpus[MAX_CPUS / 64] = {};

static __always_inline bool cpu_wanted(u32 cpu)
{
	if (!has_cpus)
		return true;
	return cpu < MAX_CPUS && cpus[cpu / 64] >> (cpu % 64) & 1;
}

#endif
