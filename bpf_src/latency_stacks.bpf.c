// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// latency.bpf.c with the stacks of slow calls: an object of its own, as most runs have none.
#define WITH_STACKS
#include "latency.bpf.c"
