"""How long threads wait for a CPU, as a histogram: runqlat of bcc, in one file."""

from __future__ import annotations

import sys
import time

import purebpf

C = """
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 10240);
	__type(key, __u32);
	__type(value, __u64);
} since SEC(".maps"); // when a thread became runnable

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u64);
} slots SEC(".maps"); // slot n: from 2^n us; slot 0: 0 and 1

static __always_inline int enqueue(struct task_struct *task)
{
	__u32 thread = task->pid;
	__u64 now = bpf_ktime_get_ns();

	if (thread)
		bpf_map_update_elem(&since, &thread, &now, BPF_ANY);
	return 0;
}

SEC("tp_btf/sched_wakeup") int BPF_PROG(on_wakeup, struct task_struct *task)
{
	return enqueue(task);
}

SEC("tp_btf/sched_wakeup_new") int BPF_PROG(on_new, struct task_struct *task)
{
	return enqueue(task);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *from, struct task_struct *to)
{
	__u32 thread = to->pid, slot = 0;
	__u64 *begun, *count, waited;

	if (preempt)
		enqueue(from);
	begun = bpf_map_lookup_elem(&since, &thread);
	if (!begun)
		return 0;
	waited = (bpf_ktime_get_ns() - *begun) / 1000;
	bpf_map_delete_elem(&since, &thread);
	for (int i = 0; i < 63 && waited > 1; i++) {
		waited >>= 1;
		slot++;
	}
	count = bpf_map_lookup_elem(&slots, &slot);
	if (count)
		++*count;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
"""


def main(arguments: list[str]) -> None:
    """Measure for some seconds (10): runqlat.py [SECONDS]."""
    with purebpf.build.load_c(C) as obj:
        obj.attach()
        time.sleep(float(arguments[0]) if arguments else 10)
        counts = [sum(per_cpu) for per_cpu in obj.maps["slots"].values()]
    print(*purebpf.log2_histogram(counts, "usecs"), sep="", end="")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        pass
    except purebpf.PurebpfError as error:  # such as a probe that this kernel lacks
        sys.exit(str(error))
