"""System calls counted in the kernel: syscount of bcc, in one file."""

from __future__ import annotations

import os
import sys
import time

import purebpf

C = """
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

const volatile __u32 target_pid; // 0: every process

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");
__u64 dropped;

SEC("raw_tp/sys_enter")
int on_call(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 number = ctx->args[1];
	__u64 one = 1, *count;

	if (target_pid && bpf_get_current_pid_tgid() >> 32 != target_pid)
		return 0;
	count = bpf_map_lookup_elem(&counts, &number);
	if (count)
		++*count;
	else if (bpf_map_update_elem(&counts, &number, &one, BPF_NOEXIST))
		__sync_fetch_and_add(&dropped, 1);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
"""


def main(arguments: list[str]) -> None:
    """Count for some seconds (10): syscount.py [SECONDS [PID]]."""
    pid = int(arguments[1]) if len(arguments) > 1 else 0
    with purebpf.build.load_c(C, variables={"target_pid": pid}) as obj:
        obj.attach()
        print("counting", flush=True)
        time.sleep(float(arguments[0]) if arguments else 10)
        counts = {number: sum(per_cpu) for number, per_cpu in obj.maps["counts"].items()}
        dropped = obj.globals["dropped"]
    machine = os.uname().machine
    for number, count in sorted(counts.items(), key=lambda entry: -entry[1]):
        print(f"{purebpf.syscall_name(machine, number) or number:<24}{count:>9}")
    print(f"dropped: {dropped}", file=sys.stderr)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        pass
    except purebpf.PurebpfError as error:  # such as a probe that this kernel lacks
        sys.exit(str(error))
