"""Slow queries of SQLite in a process: the time of each, and the lines of Python that asked."""

from __future__ import annotations

import linecache
import sys
from contextlib import ExitStack

import purebpf

C = """
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <purebpf/stacks.h>

struct event { __u64 took_ns; purebpf_stack stack; };
struct {
	__uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 4096);
	__type(key, __u64); __type(value, __u64);
} started SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 1 << 18); __type(value, struct event);
} events SEC(".maps");
const volatile __u64 slow_ns = 10000000;

SEC("uprobe") int on_step(void *ctx)
{
	__u64 thread = bpf_get_current_pid_tgid(), now = bpf_ktime_get_ns();
	return bpf_map_update_elem(&started, &thread, &now, BPF_ANY);
}
SEC("uretprobe") int on_stepped(void *ctx)
{
	__u64 thread = bpf_get_current_pid_tgid(), *start = bpf_map_lookup_elem(&started, &thread);
	struct event event = {.took_ns = start ? bpf_ktime_get_ns() - *start : 0};
	if (event.took_ns < slow_ns)
		return 0;
	event.stack = user_stack(ctx);
	return bpf_ringbuf_output(&events, &event, sizeof(event), 0);
}
char LICENSE[] SEC("license") = "GPL";
"""
STEP = "/lib/x86_64-linux-gnu/libsqlite3.so.0:sqlite3_step"


def main(arguments: list[str]) -> None:
    """Print until Ctrl-C, or for some seconds: slow_queries.py PID [SECONDS]."""
    pid, seconds = int(arguments[0]), float(arguments[1]) if arguments[1:] else None
    with ExitStack() as owned:
        traced = owned.enter_context(
            purebpf.stacks.load(purebpf.build.compile(C), pids=[pid]),
        )
        owned.enter_context(traced.programs["on_step"].attach(STEP, pid=pid))
        owned.enter_context(traced.programs["on_stepped"].attach(STEP, pid=pid))
        print("attached", flush=True)
        for event in traced.read("events", timeout=seconds):
            print(f"{event.took_ns / 1e6:.1f} ms {event.stack.end}")
            for frame in event.stack.frames:
                if frame.line:
                    line = linecache.getline(frame.file, frame.line).strip()
                    print(f"    {frame.function} {frame.file}:{frame.line}: {line}")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
