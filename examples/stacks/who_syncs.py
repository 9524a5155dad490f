"""Who calls fsync: each call with its whole user stack, Python functions among them."""

from __future__ import annotations

import sys

import purebpf

C = """
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <purebpf/stacks.h>

struct event { __u32 pid; char comm[16]; purebpf_stack stack; };
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 1 << 16); __type(value, struct event);
} events SEC(".maps");

SEC("tracepoint/syscalls/sys_enter_fsync") int on_fsync(void *ctx)
{
	struct event event = {.pid = bpf_get_current_pid_tgid() >> 32, .stack = user_stack(ctx)};
	bpf_get_current_comm(event.comm, sizeof(event.comm));
	return bpf_ringbuf_output(&events, &event, sizeof(event), 0) <= 0; // 1: perf sees it, too
}
char LICENSE[] SEC("license") = "GPL";
"""


def main(arguments: list[str]) -> None:
    """Print until Ctrl-C, or for some seconds: who_syncs.py [SECONDS]."""
    with purebpf.stacks.load(purebpf.build.compile(C)) as traced:
        traced.attach()
        print("attached", flush=True)
        for event in traced.read("events", timeout=float(arguments[0]) if arguments else None):
            print(f"{event.comm} ({event.pid}) {event.stack.end}")
            for frame in event.stack.frames:
                print(f"    {frame.function or hex(frame.address)} {frame.file}:{frame.line}")
            sys.stdout.flush()
        print({name: lost for name, lost in traced.losses().items() if lost}, file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
