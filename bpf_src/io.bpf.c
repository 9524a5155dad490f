// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Requests to block devices: how long they wait in the queue and at the device, of which process
// and which file.
//
// A request belongs to the task that makes it, which is not always the one that gives it to the
// driver: a worker of the kernel often does. Where the kernel says when a request is made
// (block_io_start, Linux 6.5, commit 5a80bd075f3b), the task is taken there; before, by the bio that
// it is made for.
#include "events.h"
#include "histogram.h"
#include "io/request.h"
#include "map_entry.h"

#define NAME_LENGTH 64

enum grouping {
	BY_DEVICE = 0,
	BY_PROCESS = 1,
	BY_FILE = 2,
};

// Which task made a request. Times are nanoseconds of CLOCK_MONOTONIC.
struct maker {
	u64 issued_ns; // 0: not yet
	u64 cgroup;
	u32 tgid; // in the pid namespace of who asks
	u32 tid;
	u32 uid;
	char comm[TASK_COMM_LEN];
	u8 wanted;
	u8 pad[3];
};

struct row_key {
	u64 inode; // by file
	u32 file_device;
	u32 disk; // by device
	u32 tgid; // by process
	u32 op;
};

// Many CPUs complete requests: they add atomically.
struct row {
	u64 requests;
	u64 errors;
	u64 bytes;
	u64 total_ns;
	u64 queued_ns;	      // of those
	u64 buckets[BUCKETS]; // of microseconds
	char comm[TASK_COMM_LEN];
	char file[NAME_LENGTH];
	char folder[NAME_LENGTH];
};

struct io_event {
	struct event head; // of the task that made it; the time is that of its end
	u64 took_ns;	   // since it was made
	u64 queued_ns;	   // of those, until it was given to the driver
	u64 sector;	   // of 512 bytes
	u64 inode;	   // 0: not known
	u32 file_device;
	u32 disk;
	u32 bytes;
	int error; // a blk_status_t, or before Linux 5.16 a negative errno
	u32 op;
	u32 pad;
	char file[NAME_LENGTH];
	char folder[NAME_LENGTH];
};

struct losses {
	u64 requests_full;     // requests that found no place
	u64 rows_full;	       // requests that found no row
	u64 before;	       // requests that were under way when the run began
	u64 outside_namespace; // wanted tasks without a pid in our pid namespace
};

CONFIG u32 grouping = BY_DEVICE;
CONFIG u64 slower_ns = ~0ULL; // requests that took so long are sent one by one
CONFIG bool has_disk = false; // only this one
CONFIG u32 wanted_disk = 0;
CONFIG bool only_failed = false;

struct losses losses = {};
struct io_event *anchor_io_event; // keeps the type in BTF

#define COUNT(field) __sync_fetch_and_add(&losses.field, 1)

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u64); // the address of a request
	__type(value, struct maker);
} requests SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u64); // the address of a bio that a request is made for
	__type(value, struct maker);
} bios SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, struct row_key);
	__type(value, struct row);
} rows SEC(".maps");

// The kernel does not run a program inside itself, and counts where it would have to.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct io_event);
} scratch SEC(".maps");

static const struct row no_row;

static __always_inline void make(struct maker *maker)
{
	u64 both = bpf_get_current_pid_tgid();
	bool numbered = own_numbers(both, true, &maker->tgid, &maker->tid);

	read_comm(&maker->comm);
	maker->uid = bpf_get_current_uid_gid();
	maker->cgroup = bpf_get_current_cgroup_id();
	maker->wanted = (!own_tgid || maker->tgid != own_tgid) && listed(maker->tgid, maker->tid) &&
			in_scope();
	if (maker->wanted && !numbered)
		COUNT(outside_namespace);
}

static __always_inline void keep(struct request *request, struct maker *maker)
{
	u64 key = (u64)request;

	if (bpf_map_update_elem(&requests, &key, maker, BPF_ANY))
		COUNT(requests_full);
}

static __always_inline bool disk_wanted(struct request *request)
{
	return !has_disk || disk_of(request) == wanted_disk;
}

SEC("?tp_btf/block_io_start")
int on_make(u64 *ctx)
{
	struct request *request = (void *)ctx[0];
	struct maker maker = {};

	if (!disk_wanted(request))
		return 0;
	make(&maker);
	keep(request, &maker);
	return 0;
}

static __always_inline int keep_bio(u64 bio)
{
	struct maker maker = {};

	make(&maker);
	bpf_map_update_elem(&bios, &bio, &maker, BPF_ANY);
	return 0;
}

SEC("?tp_btf/block_getrq")
int on_bio(u64 *ctx)
{
	return keep_bio(ctx[0]);
}

// Before Linux 5.11 the queue is the first parameter.
SEC("?tp_btf/block_getrq")
int on_bio_of_queue(u64 *ctx)
{
	return keep_bio(ctx[1]);
}

SEC("tp_btf/block_rq_issue")
int on_issue(u64 *ctx)
{
	struct request *request = (void *)ctx[0];
	u64 now_ns = bpf_ktime_get_ns(), key = (u64)request, bio;
	struct maker *known = bpf_map_lookup_elem(&requests, &key);
	struct maker maker = {};

	if (known) {
		if (!known->issued_ns) // else it is issued again
			known->issued_ns = now_ns;
		return 0;
	}
	if (!disk_wanted(request))
		return 0;
	bio = (u64)BPF_CORE_READ(request, bio);
	known = bpf_map_lookup_elem(&bios, &bio);
	if (known) {
		maker = *known;
		bpf_map_delete_elem(&bios, &bio);
	} else {
		make(&maker);
	}
	maker.issued_ns = now_ns;
	keep(request, &maker);
	return 0;
}

static __always_inline void describe(struct io_event *event, struct request *request,
				     struct maker *maker, u64 now_ns)
{
	u64 made_ns = BPF_CORE_READ(request, start_time_ns);

	__builtin_memset(event, 0, sizeof(*event));
	event->head.time_ns = now_ns;
	event->head.cgroup = maker->cgroup;
	event->head.tgid = maker->tgid;
	event->head.tid = maker->tid;
	event->head.uid = maker->uid;
	__builtin_memcpy(event->head.comm, maker->comm, sizeof(event->head.comm));
	if (!made_ns || made_ns > maker->issued_ns) // without statistics of the queue
		made_ns = maker->issued_ns;
	event->took_ns = now_ns - made_ns;
	event->queued_ns = maker->issued_ns - made_ns;
	event->sector = BPF_CORE_READ(request, __sector);
	event->bytes = BPF_CORE_READ(request, __data_len);
	event->disk = disk_of(request);
	event->op = BPF_CORE_READ(request, cmd_flags) & REQ_OP_MASK;
}

static __always_inline void put_file(struct io_event *event, struct request *request)
{
	struct inode *inode = inode_of(request);

	if (!inode)
		return;
	event->inode = BPF_CORE_READ(inode, i_ino);
	event->file_device = BPF_CORE_READ(inode, i_sb, s_dev);
	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFBLK) {
		event->file_device = 0; // of the file system itself, or of the device as a file
		return;
	}
	names_of(inode, event->file, event->folder, NAME_LENGTH);
}

static __always_inline void add(struct io_event *event)
{
	struct row_key key = {.op = event->op};
	struct row *row;
	bool is_new;
	u32 bucket = bucket_of(event->took_ns / 1000);

	if (grouping == BY_DEVICE) {
		key.disk = event->disk;
	} else if (grouping == BY_PROCESS) {
		key.tgid = event->head.tgid;
	} else {
		key.inode = event->inode;
		key.file_device = event->file_device;
	}
	row = find_or_add_entry(&rows, &key, &no_row, &is_new);
	if (!row) {
		COUNT(rows_full);
		return;
	}
	if (is_new) {
		__builtin_memcpy(row->comm, event->head.comm, sizeof(row->comm));
		__builtin_memcpy(row->file, event->file, sizeof(row->file));
		__builtin_memcpy(row->folder, event->folder, sizeof(row->folder));
	}
	__sync_fetch_and_add(&row->requests, 1);
	__sync_fetch_and_add(&row->bytes, event->bytes);
	__sync_fetch_and_add(&row->total_ns, event->took_ns);
	__sync_fetch_and_add(&row->queued_ns, event->queued_ns);
	if (event->error)
		__sync_fetch_and_add(&row->errors, 1);
	OPAQUE(bucket);
	if (bucket < BUCKETS)
		__sync_fetch_and_add(&row->buckets[bucket], 1);
}

// The bios of the request, and their pages, are there until this returns.
SEC("tp_btf/block_rq_complete")
int on_complete(u64 *ctx)
{
	struct request *request = (void *)ctx[0];
	u64 now_ns = bpf_ktime_get_ns(), key = (u64)request;
	u32 bytes = ctx[2], zero = 0;
	struct maker *known, maker;
	struct io_event *event;

	if (bytes < BPF_CORE_READ(request, __data_len))
		return 0; // a part of it
	known = bpf_map_lookup_elem(&requests, &key);
	if (!known) {
		if (disk_wanted(request))
			COUNT(before);
		return 0;
	}
	maker = *known;
	bpf_map_delete_elem(&requests, &key);
	event = bpf_map_lookup_elem(&scratch, &zero);
	if (!maker.wanted || !event || !cpu_wanted(bpf_get_smp_processor_id()))
		return 0;
	if (!maker.issued_ns) {
		COUNT(before);
		return 0;
	}
	describe(event, request, &maker, now_ns);
	event->error = ctx[1];
	if (only_failed && !event->error)
		return 0;
	if (grouping == BY_FILE || event->took_ns >= slower_ns)
		put_file(event, request);
	add(event);
	if (event->took_ns >= slower_ns)
		send_event(event, sizeof(*event));
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
