// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Calls that a trace lacks, other than those that the ring had no room for.
#ifndef TRACE_LOSSES_H
#define TRACE_LOSSES_H

#include "purebpf.h"

struct losses {
	u64 states_full;    // calls of tasks that found no place
	u64 starts_unknown; // calls whose entry was not seen, where --least asks how long they took
	u64 numbers_unknown;   // returns of calls whose number a tracer has replaced
	u64 outside_namespace; // calls of tasks without a number in our pid namespace
};

struct losses losses = {};

#define COUNT(field) __sync_fetch_and_add(&losses.field, 1)

#endif
