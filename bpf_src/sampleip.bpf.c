// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Instruction pointers within ranges: each one sent to user space, or counted here.
#include "counter.h"
#include "pid_namespace.h"
#include "slab.h"
#include "targets.h"

#define MAX_RANGES 64
#define REGISTERS 15 // r15 to rdi

// The context of a perf_event program on x86_64 begins with its struct pt_regs.
struct sample_context {
	u64 registers[16]; // r15 to orig_rax
	u64 ip;
};

// `ip` is first: what bpf_perf_event_output(2) of a single address would send.
struct ip_event {
	u64 ip;
	u64 time_ns; // CLOCK_MONOTONIC
	u32 cpu;
	u32 tgid;
	u32 tid;
	u32 reserved;
	char comm[TASK_COMM_LEN];
};

struct ip_range {
	u64 start;
	u64 last; // inclusive
	u32 tgid; // whose addresses these are; 0: everybody's
	u32 reserved;
};

struct ip_key {
	u64 ip;
	u32 tgid; // 0 for the kernel's own addresses, which are the same everywhere
	u32 reserved;
};

// The object that a register led to, the same one in each sample of an address.
struct slab_object {
	u64 cache; // 0: in no slab
	u32 offset;
	u32 differs; // not in each sample
};

struct slab_objects {
	u64 samples;
	struct slab_object by_register[REGISTERS];
};

struct slab_cache {
	char name[CACHE_LENGTH];
	u32 object_size;
	u32 shared; // caches of other objects are part of it
};

struct stats {
	u64 seen;	       // the program ran
	u64 others;	       // of tasks that were not asked for
	u64 outside;	       // in none of the ranges
	u64 outside_namespace; // of tgid 0 for want of a pid in our pid namespace
	u64 emitted;	       // sent
	u64 output_full;       // the ring of the CPU had no room
	u64 output_none;       // the CPU has no ring: it came online later
	u64 output_failed;
	u64 counted;
	u64 counts_full;
	u64 counts_busy; // the sample interrupted an update of the counts
};

CONFIG bool counting = false;
CONFIG u32 range_count = 0;
CONFIG bool has_slabs = false; // counts note the slab caches that the registers lead to

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_RANGES);
	__type(key, u32);
	__type(value, struct ip_range);
} ranges SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, struct ip_key);
	__type(value, u64);
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stats);
} stats SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, struct slab_objects);
} slabs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u64);
	__type(value, struct slab_cache);
} slab_caches SEC(".maps");

static const struct slab_objects no_objects = {};

struct ip_event *anchor_ip_event; // keeps the type in BTF

static __always_inline bool inside(u64 ip, u32 tgid)
{
	if (!range_count)
		return true;
	for (u32 i = 0; i < MAX_RANGES; i++) {
		u32 key = i;
		struct ip_range *range;

		if (i >= range_count)
			return false;
		range = bpf_map_lookup_elem(&ranges, &key);
		if (range && ip >= range->start && ip <= range->last &&
		    (!range->tgid || range->tgid == tgid))
			return true;
	}
	return false;
}

static __noinline int name_cache(u64 number)
{
	struct kmem_cache *cache = (void *)number;
	struct slab_cache entry = {};

	if (bpf_map_lookup_elem(&slab_caches, &number))
		return 0;
	bpf_probe_read_kernel_str(entry.name, sizeof(entry.name), BPF_CORE_READ(cache, name));
	entry.object_size = BPF_CORE_READ(cache, object_size);
	entry.shared = (int)BPF_CORE_READ(cache, refcount) > 1;
	return bpf_map_update_elem(&slab_caches, &number, &entry, BPF_NOEXIST);
}

static __always_inline void note_object(struct slab_object *object, u64 address, bool is_first)
{
	struct kmem_cache *cache = NULL;
	u32 offset = 0;

	if (address >> 47 == 0x1ffff)
		cache = bpf_get_kmem_cache(address);
	if (cache) {
		offset = slab_offset(cache, address, BPF_CORE_READ(cache, oo.x));
		if (offset != slab_offset(cache, address, BPF_CORE_READ(cache, min.x)))
			cache = NULL; // the slab may be of either size
	}
	if (is_first) {
		object->cache = (u64)cache;
		object->offset = offset;
		if (cache)
			name_cache((u64)cache);
	} else if (object->cache != (u64)cache || object->offset != offset) {
		object->differs = 1;
	}
}

// A full map notes no further addresses: they have no evidence then.
static __always_inline void note_objects(struct sample_context *ctx, u64 ip)
{
	struct slab_objects *objects = bpf_map_lookup_elem(&slabs, &ip);
	bool is_first = !objects;

	if (is_first) {
		bpf_map_update_elem(&slabs, &ip, &no_objects, BPF_NOEXIST);
		objects = bpf_map_lookup_elem(&slabs, &ip);
	}
	if (!objects)
		return;
	objects->samples++;
#pragma unroll
	for (u32 i = 0; i < REGISTERS; i++)
		note_object(&objects->by_register[i], ctx->registers[i], is_first);
}

static __always_inline int sample(struct sample_context *ctx, bool typed)
{
	u64 now_ns = bpf_ktime_get_ns();
	u64 ip = ctx->ip;
	struct ip_event event = {};
	bool numbered;
	u32 zero = 0;
	struct stats *st = bpf_map_lookup_elem(&stats, &zero);

	if (!st)
		return 0;
	st->seen++;
	numbered = own_numbers(bpf_get_current_pid_tgid(), typed, &event.tgid, &event.tid);
	if (!listed(event.tgid, event.tid) || !runs_as_user()) {
		st->others++;
		return 0;
	}
	if (!inside(ip, event.tgid)) {
		st->outside++;
		return 0;
	}
	if (!numbered && !(counting && (s64)ip < 0))
		st->outside_namespace++;
	if (counting) {
		struct ip_key key = {.ip = ip, .tgid = (s64)ip < 0 ? 0 : event.tgid};

		count(&counts, &key, &st->counted, &st->counts_full, &st->counts_busy);
		if (has_slabs && bpf_get_kmem_cache && (s64)ip < 0)
			note_objects(ctx, ip);
		return 0;
	}
	event.ip = ip;
	event.time_ns = now_ns;
	event.cpu = bpf_get_smp_processor_id();
	bpf_get_current_comm(event.comm, sizeof(event.comm));
	count_output(bpf_perf_event_output(ctx, &events, BPF_F_CURRENT_CPU, &event, sizeof(event)),
		     &st->emitted, &st->output_full, &st->output_none, &st->output_failed);
	return 0;
}

SEC("perf_event")
int on_sample(struct sample_context *ctx)
{
	return sample(ctx, false);
}

// The same, from within a pid namespace: needs the kernel's BTF.
SEC("?perf_event")
int on_sample_typed(struct sample_context *ctx)
{
	return sample(ctx, true);
}

// Runs before a user's own program (own_program.bpf.c), which sees only samples in the ranges. What is
// kept is sent or counted by on_sample.
static __always_inline int admit(struct sample_context *ctx, bool typed)
{
	u64 ip = ctx->ip;
	u32 tgid, tid, zero = 0;
	struct stats *st = bpf_map_lookup_elem(&stats, &zero);

	if (!st)
		return 0;
	own_numbers(bpf_get_current_pid_tgid(), typed, &tgid, &tid);
	if (!listed(tgid, tid) || !runs_as_user()) {
		st->seen++;
		st->others++;
		return 0;
	}
	if (!inside(ip, tgid)) {
		st->seen++;
		st->outside++;
		return 0;
	}
	return 1;
}

SEC("?perf_event")
int is_inside(struct sample_context *ctx)
{
	return admit(ctx, false);
}

SEC("?perf_event")
int is_inside_typed(struct sample_context *ctx)
{
	return admit(ctx, true);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
