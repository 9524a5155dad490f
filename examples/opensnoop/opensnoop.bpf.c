// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// A record for each open() of a file, with what came of it.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define MAX_PATH 256

const volatile __u32 target_pid = 0; // 0: every process
const volatile _Bool failed_only = 0;

// The fields that both tracepoints begin with: /sys/kernel/tracing/events/syscalls/*/format.
struct enter {
	__u64 common;
	__s64 nr;
	__u64 arguments[6];
};

struct leave {
	__u64 common;
	__s64 nr;
	__s64 result;
};

struct opened {
	__u32 pid, uid;
	__s32 result; // a file descriptor, or minus an errno
	char comm[16];
	char path[MAX_PATH];
};

// What a thread that is in the call asked for: it is there again when the call ends.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32); // thread
	__type(value, __u64); // address of the path
} asked SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
	__type(value, struct opened);
} events SEC(".maps");

volatile __u64 lost = 0;

// Programs of tracepoints return 1: after 0, perf and others do not see the events.
static int on_enter(__u64 path)
{
	__u64 id = bpf_get_current_pid_tgid();
	__u32 thread = id;

	if (target_pid && id >> 32 != target_pid)
		return 1;
	if (bpf_map_update_elem(&asked, &thread, &path, BPF_ANY))
		__sync_fetch_and_add(&lost, 1);
	return 1;
}

SEC("tp/syscalls/sys_enter_openat")
int enter_openat(struct enter *context)
{
	return on_enter(context->arguments[1]);
}

SEC("tp/syscalls/sys_enter_openat2")
int enter_openat2(struct enter *context)
{
	return on_enter(context->arguments[1]);
}

static int on_exit(struct leave *context)
{
	__u64 id = bpf_get_current_pid_tgid(), *path;
	__u32 thread = id;
	struct opened *event;

	path = bpf_map_lookup_elem(&asked, &thread);
	if (!path)
		return 1;
	if (failed_only && context->result >= 0)
		goto done;
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		__sync_fetch_and_add(&lost, 1);
		goto done;
	}
	event->pid = id >> 32;
	event->uid = bpf_get_current_uid_gid();
	event->result = context->result;
	bpf_get_current_comm(event->comm, sizeof(event->comm));
	// read now, when the kernel has brought the page in: at the start it may not be in memory
	if (bpf_probe_read_user_str(event->path, sizeof(event->path), (void *)*path) < 0)
		event->path[0] = 0;
	bpf_ringbuf_submit(event, 0);
done:
	bpf_map_delete_elem(&asked, &thread);
	return 1;
}

SEC("tp/syscalls/sys_exit_openat")
int exit_openat(struct leave *context)
{
	return on_exit(context);
}

SEC("tp/syscalls/sys_exit_openat2")
int exit_openat2(struct leave *context)
{
	return on_exit(context);
}
