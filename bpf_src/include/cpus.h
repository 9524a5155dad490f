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
	u32 word = cpu / 64;

	if (!has_cpus)
		return true;
	OPAQUE(word); // Linux 6.1 is shown another register than the one that was compared
	return word < MAX_CPUS / 64 && cpus[word] >> (cpu % 64) & 1;
}

#endif
