// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// How long requests to disks take, from the moment when they are given to the driver: a histogram
// by powers of two for reads and one for everything else.
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define SLOTS 32
#define REQ_OP_MASK 0xff
#define REQ_OP_READ 0

const volatile __u32 target_major = 0; // 0: every disk
const volatile __u32 target_minor = 0; // the first one of the disk: partitions belong to it

struct gendisk {
	int major, first_minor;
} __attribute__((preserve_access_index));

struct request_queue {
	struct gendisk *disk;
} __attribute__((preserve_access_index));

struct request {
	struct request_queue *q;
	unsigned int cmd_flags;
} __attribute__((preserve_access_index));

// The same struct before Linux 5.17 (f3fa33acca9f, "block: remove the ->rq_disk field in struct
// request"): CO-RE ignores what follows ___ in a name.
struct request___before_5_17 {
	struct gendisk *rq_disk;
} __attribute__((preserve_access_index));

struct histogram {
	__u64 slots[SLOTS];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64); // request
	__type(value, __u64); // when it was issued
} issued SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); // one writer for each slot: nothing is lost to a race
	__uint(max_entries, 2); // reads, others
	__type(key, __u32);
	__type(value, struct histogram);
} latencies SEC(".maps");

volatile __u64 lost = 0;

static __always_inline struct gendisk *disk_of(struct request *request)
{
	struct request___before_5_17 *older = (void *)request;

	if (bpf_core_field_exists(older->rq_disk))
		return older->rq_disk;
	return request->q->disk;
}

static __always_inline int is_wanted(struct request *request)
{
	struct gendisk *disk = disk_of(request);

	return !target_major ||
	       (disk && disk->major == target_major && disk->first_minor == target_minor);
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(on_issue, struct request *request)
{
	__u64 key = (__u64)request, now = bpf_ktime_get_ns();

	if (is_wanted(request) && bpf_map_update_elem(&issued, &key, &now, BPF_ANY))
		__sync_fetch_and_add(&lost, 1);
	return 0;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_complete, struct request *request)
{
	__u64 key = (__u64)request, *then = bpf_map_lookup_elem(&issued, &key), us;
	__u32 which = (request->cmd_flags & REQ_OP_MASK) != REQ_OP_READ, slot = 0;
	struct histogram *histogram = bpf_map_lookup_elem(&latencies, &which);

	if (!then || !histogram)
		return 0; // issued before we looked, or not wanted
	us = (bpf_ktime_get_ns() - *then) / 1000;
	bpf_map_delete_elem(&issued, &key);
	for (int bit = 16; bit; bit >>= 1) { // log2, without a loop over the bits
		if (us >> bit) {
			us >>= bit;
			slot += bit;
		}
	}
	histogram->slots[slot & (SLOTS - 1)]++;
	return 0;
}
