// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Programs of each kind that <purebpf/stacks.h> serves. Names of the library's own maps and variables
// (stacks, walks, phase) are free for others.
#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <purebpf/stacks.h>

struct event {
	__u32 pid;
	__u32 pad;
	purebpf_stack stack;
	purebpf_stack kernel;
};

const volatile __u32 target = 0;
__u64 phase = 0; // events

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
	__type(value, struct event);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, purebpf_stack);
	__type(value, __u64);
} stacks SEC(".maps");

static __always_inline int record(void *ctx)
{
	__u32 pid = bpf_get_current_pid_tgid() >> 32;
	struct event *event;
	__u64 *count, one = 1;
	purebpf_stack stack;

	if (pid != target)
		return 0;
	stack = user_stack(ctx);
	count = bpf_map_lookup_elem(&stacks, &stack);
	if (count)
		__sync_fetch_and_add(count, 1);
	else
		bpf_map_update_elem(&stacks, &stack, &one, BPF_ANY);
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event)
		return 0;
	event->pid = pid;
	event->pad = 0;
	event->stack = stack;
	event->kernel = kernel_stack(ctx);
	bpf_ringbuf_submit(event, 0);
	__sync_fetch_and_add(&phase, 1);
	return 0;
}

#define PROGRAM(section, name)                                                        \
	SEC("?" section) int name(void *ctx)                                          \
	{                                                                             \
		return record(ctx);                                                   \
	}

PROGRAM("perf_event", on_sample)
PROGRAM("uprobe", on_call)
PROGRAM("usdt", on_probe)
PROGRAM("kprobe/__x64_sys_getppid", on_kprobe)
PROGRAM("tracepoint/syscalls/sys_enter_getppid", on_tracepoint)
PROGRAM("raw_tracepoint/sys_enter", on_raw_tracepoint)
PROGRAM("tp_btf/sys_enter", on_typed_tracepoint)
PROGRAM("tp_btf/sched_switch", on_switch)
PROGRAM("fentry/__task_pid_nr_ns", on_function)
PROGRAM("fexit/__task_pid_nr_ns", on_function_end)

char LICENSE[] SEC("license") = "Dual BSD/GPL";
