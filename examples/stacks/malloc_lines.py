"""Bytes that a process requests from malloc(), by the line of Python that asks for them."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import ExitStack

import purebpf

C = """
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <purebpf/stacks.h>

struct {
	__uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 16384);
	__type(key, purebpf_stack); __type(value, __u64);
} sizes SEC(".maps");

SEC("uprobe") int BPF_UPROBE(on_malloc, unsigned long size)
{
	purebpf_stack stack = user_stack(ctx);
	__u64 *sum = bpf_map_lookup_elem(&sizes, &stack), none = 0;
	if (!sum && !bpf_map_update_elem(&sizes, &stack, &none, BPF_NOEXIST))
		sum = bpf_map_lookup_elem(&sizes, &stack);
	if (sum)
		__sync_fetch_and_add(sum, size);
	return 0;
}
char LICENSE[] SEC("license") = "GPL";
"""
MALLOC = "/lib/x86_64-linux-gnu/libc.so.6:malloc"


def main(arguments: list[str]) -> None:
    """Count for some seconds: malloc_lines.py PID [SECONDS]."""
    pid, seconds = int(arguments[0]), float(arguments[1]) if arguments[1:] else 5.0
    built = purebpf.build.compile(C, defines={"__TARGET_ARCH_x86": 1})
    with ExitStack() as owned:
        traced = owned.enter_context(purebpf.stacks.load(built, pids=[pid]))
        with traced.programs["on_malloc"].attach(MALLOC, pid=pid):
            traced.settle()  # while tables are missing, stacks of a busy process are cut
            traced.maps["sizes"].clear()
            print("attached", flush=True)
            traced.wait(seconds)
        lines: Counter[str] = Counter()
        for number, size in traced.maps["sizes"].items():
            frames = traced.stack(number).frames
            places = (f"{each.function} {each.file}:{each.line}" for each in frames if each.line)
            lines[next(places, "no function of Python")] += size
        for line, size in lines.most_common(10):
            print(f"{size / 1e6:9.2f} MB  {line}")
        print({name: lost for name, lost in traced.losses().items() if lost}, file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
