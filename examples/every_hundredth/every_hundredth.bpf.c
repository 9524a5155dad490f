// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Keeps every hundredth call, counted over all CPUs, and drops the others.
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct calls {
	__u64 count;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct calls);
} calls SEC(".maps");

SEC("perf_event")
int every_hundredth(struct bpf_perf_event_data *ctx)
{
	__u32 zero = 0;
	struct calls *all = bpf_map_lookup_elem(&calls, &zero);

	if (!all)
		return 0;
	return (__sync_fetch_and_add(&all->count, 1) + 1) % 100 == 0;
}
