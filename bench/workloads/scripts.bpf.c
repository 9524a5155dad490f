// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The scripts of bench/script.py as a C programmer writes them: each program has the name of its
// script; `_exit` are the second halves. The last ones do nothing, at the attach points of the others.
#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define LENGTH 200

struct call { __u64 common; long id; unsigned long args[6]; };
struct words { __u64 number; __u64 total; };
struct comm_id { char comm[16]; __u64 id; };
struct comm_name { char comm[16]; char name[LENGTH]; };
struct tid_bucket { __u32 tid; __u32 bucket; };

#define MAP(name, kind, key_type, value_type, entries) \
	struct { __uint(type, kind); __uint(max_entries, entries); \
		 __type(key, key_type); __type(value, value_type); } name SEC(".maps")

MAP(by_number, BPF_MAP_TYPE_PERCPU_HASH, __u64, __u64, 4096);
MAP(by_comm, BPF_MAP_TYPE_PERCPU_HASH, struct comm_id, __u64, 4096);
MAP(by_name, BPF_MAP_TYPE_PERCPU_HASH, struct comm_name, __u64, 4096);
MAP(by_tid, BPF_MAP_TYPE_PERCPU_HASH, struct tid_bucket, __u64, 4096);
MAP(shared, BPF_MAP_TYPE_HASH, __u64, __u64, 4096);
MAP(begun, BPF_MAP_TYPE_HASH, __u64, __u64, 4096);
MAP(buckets, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, __u64, 65);
MAP(total, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct words, 1);
MAP(scratch, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct comm_name, 1);

const volatile __u32 target = 0;
static const __u64 one = 1;

#define BUMP(map, key) do { \
	__u64 *found = bpf_map_lookup_elem(&(map), (key)); \
	if (found) \
		*found += 1; \
	else \
		bpf_map_update_elem(&(map), (key), &one, BPF_ANY); \
} while (0)

static __always_inline void add(__u64 amount)
{
	__u32 zero = 0;
	struct words *words = bpf_map_lookup_elem(&total, &zero);

	if (words) {
		words->number += 1;
		words->total += amount;
	}
}

static __always_inline void bucket(__s64 value)
{
	__u32 place = 0;
	__u64 *found;

	if (value < 0)
		place = 0;
	else if (value == 0)
		place = 1;
	else {
		__u64 rest = value;
		place = 2;
		if (rest >> 32) { rest >>= 32; place += 32; }
		if (rest >> 16) { rest >>= 16; place += 16; }
		if (rest >> 8) { rest >>= 8; place += 8; }
		if (rest >> 4) { rest >>= 4; place += 4; }
		if (rest >> 2) { rest >>= 2; place += 2; }
		if (rest >> 1)
			place += 1;
	}
	found = bpf_map_lookup_elem(&buckets, &place);
	if (found)
		*found += 1;
}

static __always_inline int is_other(void)
{
	return bpf_get_current_pid_tgid() >> 32 != target;
}

SEC("raw_tp/sys_enter") int count(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 id = ctx->args[1];

	if (is_other())
		return 0;
	BUMP(by_number, &id);
	return 0;
}

SEC("raw_tp/sys_enter") int scalar(struct bpf_raw_tracepoint_args *ctx)
{
	if (!is_other())
		add(0);
	return 0;
}

SEC("raw_tp/sys_enter") int comm(struct bpf_raw_tracepoint_args *ctx)
{
	struct comm_id key = {};

	if (is_other())
		return 0;
	bpf_get_current_comm(key.comm, sizeof(key.comm));
	key.id = ctx->args[1];
	BUMP(by_comm, &key);
	return 0;
}

SEC("raw_tp/sys_enter") int latency(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 now, tid = bpf_get_current_pid_tgid();

	if (tid >> 32 != target)
		return 0;
	tid = (__u32)tid;
	now = bpf_ktime_get_boot_ns();
	bpf_map_update_elem(&begun, &tid, &now, BPF_ANY);
	return 0;
}

SEC("raw_tp/sys_exit") int latency_exit(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 tid = (__u32)bpf_get_current_pid_tgid();
	__u64 *start = bpf_map_lookup_elem(&begun, &tid);

	if (!start || !*start)
		return 0;
	bucket((bpf_ktime_get_boot_ns() - *start) / 1000);
	bpf_map_delete_elem(&begun, &tid);
	return 0;
}

SEC("raw_tp/sys_enter") int hist(struct bpf_raw_tracepoint_args *ctx)
{
	if (!is_other())
		bucket(ctx->args[1]);
	return 0;
}

SEC("raw_tp/sys_enter") int plus(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 id = ctx->args[1], *found;

	if (is_other())
		return 0;
	found = bpf_map_lookup_elem(&shared, &id);
	if (found)
		__sync_fetch_and_add(found, 1);
	else
		bpf_map_update_elem(&shared, &id, &one, BPF_NOEXIST);
	return 0;
}

SEC("raw_tp/sys_enter") int comparison(struct bpf_raw_tracepoint_args *ctx)
{
	char name[16];

	bpf_get_current_comm(name, sizeof(name));
	if (!__builtin_memcmp(name, "calls", 6))
		add(0);
	return 0;
}

SEC("raw_tp/sys_enter") int missed(struct bpf_raw_tracepoint_args *ctx)
{
	if (bpf_get_current_pid_tgid() >> 32 == 1)
		add(0);
	return 0;
}

SEC("tracepoint/syscalls/sys_enter_getppid") int one_call(void *ctx)
{
	if (!is_other())
		add(0);
	return 0;
}

SEC("raw_tp/sys_enter") int branches(struct bpf_raw_tracepoint_args *ctx)
{
	__s64 id = ctx->args[1];

	if (is_other())
		return 0;
	if (id > 100 && id != 231)
		add(id * 3 + 1);
	else {
		__u64 key = (__u64)id % 7;
		BUMP(by_number, &key);
	}
	return 0;
}

SEC("raw_tp/sys_enter") int linear(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 tid = bpf_get_current_pid_tgid();
	__s64 value = ctx->args[1];
	struct tid_bucket key = { .tid = tid };

	if (tid >> 32 != target)
		return 0;
	key.bucket = value < 0 ? 0 : value >= 400 ? 41 : 1 + (__u64)value / 10;
	BUMP(by_tid, &key);
	return 0;
}

SEC("tracepoint/syscalls/sys_enter_openat") int names(struct call *ctx)
{
	__u32 zero = 0;
	struct comm_name *key;

	if (is_other())
		return 0;
	key = bpf_map_lookup_elem(&scratch, &zero);
	if (!key)
		return 0;
	__builtin_memset(key, 0, sizeof(*key));
	bpf_get_current_comm(key->comm, sizeof(key->comm));
	bpf_probe_read_user_str(key->name, sizeof(key->name), (const char *)ctx->args[1]);
	BUMP(by_name, key);
	return 0;
}

SEC("raw_tp/sys_enter") int nothing_raw(void *ctx)
{
	return 0;
}

SEC("tracepoint/raw_syscalls/sys_enter") int nothing_traced(void *ctx)
{
	return 0;
}

SEC("tracepoint/syscalls/sys_enter_getppid") int nothing_getppid(void *ctx)
{
	return 0;
}

SEC("tracepoint/syscalls/sys_enter_openat") int nothing_openat(void *ctx)
{
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
