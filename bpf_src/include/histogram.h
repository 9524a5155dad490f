// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Histograms with four buckets to each power of two. purebpf/results/shape/histogram.py reads them.
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#include "purebpf.h"

#define BUCKETS 192 // up to 2^49

// 0 to 3 have a bucket each; above, the two bits behind the first one choose among four.
static __always_inline u32 bucket_of(u64 value)
{
	u64 rest = value;
	u32 exponent = 0, bucket;

	if (value < 4)
		return value;
#pragma clang loop unroll(full)
	for (u32 step = 32; step; step /= 2) {
		if (rest >> step) {
			rest >>= step;
			exponent += step;
		}
	}
	bucket = (exponent - 1) * 4 + (value >> (exponent - 2) & 3);
	return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

// One writer only.
static __always_inline void add_to_buckets(u64 *buckets, u64 value)
{
	u32 bucket = bucket_of(value);

	OPAQUE(bucket);
	if (bucket < BUCKETS)
		buckets[bucket]++;
}

#endif
