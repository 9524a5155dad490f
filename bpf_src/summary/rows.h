// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Statistics of calls: in `totals` by number, or in a row of any key.
#ifndef SUMMARY_ROWS_H
#define SUMMARY_ROWS_H

#include "map_entry.h"
#include "records.h"

#define SLOTS 512 // numbers of each ABI that have a place in `totals`
#define EPOCHS 2  // one is written while the other one is read

CONFIG bool histograms_wanted = false;
CONFIG bool errnos_wanted = false;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, EPOCHS * 2 * SLOTS);
	__type(key, u32);
	__type(value, struct statistics);
} totals SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, EPOCHS * 2 * SLOTS);
	__type(key, u32);
	__type(value, struct histogram);
} total_histograms SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 131072);
	__type(key, struct row_key);
	__type(value, struct statistics);
} rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, struct row_key);
	__type(value, struct histogram);
} histograms SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct error_key);
	__type(value, u64);
} errors SEC(".maps");

static const struct statistics no_statistics;
static const struct histogram no_histogram;

// Adds x * x, of which the lower half is exact in 64 bits as long as x is below 2^32 (4.3 s).
static __always_inline void add_square(struct statistics *row, u64 x)
{
	u64 low = x * x;

	if (x >> 32) {
		u64 upper = x >> 32, lower = (u32)x, cross = upper * lower;

		row->squares_high += upper * upper + (cross >> 31) + (low < lower * lower);
	}
	row->squares_low += low;
	if (row->squares_low < low)
		row->squares_high++;
}

#define UNTIMED (~0ULL) // as a duration: it is not known

static __always_inline void add(struct statistics *row, u64 elapsed_ns, bool failed)
{
	if (failed)
		row->errors++;
	if (elapsed_ns == UNTIMED) {
		row->calls++;
		row->untimed++;
		return;
	}
	if (row->calls == row->untimed || elapsed_ns < row->min_ns)
		row->min_ns = elapsed_ns;
	if (elapsed_ns > row->max_ns)
		row->max_ns = elapsed_ns;
	row->calls++;
	row->total_ns += elapsed_ns;
	add_square(row, elapsed_ns);
}

static __noinline void count_error(struct row_key *row, u32 errno_value)
{
	struct error_key key = {.row = *row, .errno_value = errno_value};
	u64 first = 1, *found = bpf_map_lookup_elem(&errors, &key);

	if (found)
		++*found;
	else if (bpf_map_update_elem(&errors, &key, &first, BPF_NOEXIST))
		COUNT(errors_full);
}

static __noinline void count_in_histogram(struct row_key *row, u64 elapsed_ns)
{
	struct histogram *histogram = find_or_add(&histograms, row, &no_histogram);

	if (histogram)
		add_to_buckets(histogram->buckets, elapsed_ns);
	else
		COUNT(histograms_full);
}

// Counts in a row of its own: any group, and numbers that `totals` has no place for.
static __always_inline void count_in_row(struct row_key *key, u64 elapsed_ns, u32 errno_value)
{
	struct statistics *row = find_or_add(&rows, key, &no_statistics);

	if (!row) {
		COUNT(rows_full);
		return;
	}
	add(row, elapsed_ns, errno_value != 0);
	if (histograms_wanted && elapsed_ns != UNTIMED)
		count_in_histogram(key, elapsed_ns);
}

static __always_inline void count_in_totals(u32 slot, u64 elapsed_ns, u32 errno_value)
{
	struct statistics *row = bpf_map_lookup_elem(&totals, &slot);
	struct histogram *histogram;

	if (!row)
		return; // not so: slot is below max_entries
	add(row, elapsed_ns, errno_value != 0);
	if (!histograms_wanted || elapsed_ns == UNTIMED)
		return;
	histogram = bpf_map_lookup_elem(&total_histograms, &slot);
	if (histogram)
		add_to_buckets(histogram->buckets, elapsed_ns);
}

// The row that a call counts in, for the tables that are keyed by it.
static __always_inline struct row_key row_of(struct task_state *state, u32 mode, u32 epoch)
{
	struct row_key key = {.nr = state->nr, .abi = state->abi & 1, .epoch = epoch};

	if (mode == MODE_CGROUP)
		key.group = bpf_get_current_cgroup_id();
	else if (mode != MODE_TOTAL)
		key.group = state->group;
	if (mode != MODE_THREAD)
		key.cpu = bpf_get_smp_processor_id();
	return key;
}

static __always_inline void count(struct task_state *state, u32 epoch, u64 elapsed_ns,
				  u32 errno_value)
{
	u32 grouping = mode; // read once: each read of a constant is an instruction
	struct row_key key;

	if (grouping == MODE_TOTAL && state->nr < SLOTS) {
		count_in_totals((epoch * 2 + (state->abi & 1)) * SLOTS + state->nr, elapsed_ns,
				errno_value);
		if (!errnos_wanted || !errno_value)
			return;
		key = row_of(state, grouping, epoch);
	} else {
		key = row_of(state, grouping, epoch);
		count_in_row(&key, elapsed_ns, errno_value);
	}
	if (errnos_wanted && errno_value)
		count_error(&key, errno_value);
}

#endif
