// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Records that user space gets with the top of the user stack, which the kernel appends as the event
// in `copies` asks for it (PERF_SAMPLE_STACK_USER).
#ifndef COPY_OUTPUT_H
#define COPY_OUTPUT_H

#include "counter.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} copies SEC(".maps");

// Sends a record, and counts what came of it: count_output().
static __always_inline bool output_copy(void *ctx, void *record, u64 size, u64 *copied, u64 *full,
					u64 *none, u64 *failed)
{
	return count_output(bpf_perf_event_output(ctx, &copies, BPF_F_CURRENT_CPU, record, size),
			    copied, full, none, failed);
}

#endif
