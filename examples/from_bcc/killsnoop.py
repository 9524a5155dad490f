"""Signals that processes send by kill(2): killsnoop of bcc, in one file."""

from __future__ import annotations

import signal
import sys

import purebpf

C = """
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

struct sent {
	__u32 pid;
	__s32 target;
	__s32 number;
	char comm[16];
};
struct sent *sent_record;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);
} sent SEC(".maps");
__u64 lost;

// They return 1: after 0, perf and others do not see the events.
SEC("tracepoint/syscalls/sys_enter_kill")
int on_kill(struct trace_event_raw_sys_enter *ctx)
{
	struct sent *record = bpf_ringbuf_reserve(&sent, sizeof(*record), 0);

	if (!record) {
		__sync_fetch_and_add(&lost, 1);
		return 1;
	}
	record->pid = bpf_get_current_pid_tgid() >> 32;
	record->target = ctx->args[0];
	record->number = ctx->args[1];
	bpf_get_current_comm(record->comm, sizeof(record->comm));
	bpf_ringbuf_submit(record, 0);
	return 1;
}

char LICENSE[] SEC("license") = "GPL";
"""


def main(arguments: list[str]) -> None:
    """Print until Ctrl-C, or for some seconds: killsnoop.py [SECONDS]."""
    with purebpf.build.load_c(C) as obj:
        obj.attach()
        print(f"{'PID':<8}{'COMM':<17}{'SIGNAL':<9}TARGET", flush=True)
        for sent in obj.maps["sent"].read(timeout=float(arguments[0]) if arguments else None):
            known = sent.number in {*signal.Signals}
            name = signal.Signals(sent.number).name if known else str(sent.number)
            print(f"{sent.pid:<8}{sent.comm:<17}{name:<9}{sent.target}", flush=True)
        print(f"lost: {obj.globals['lost']}", file=sys.stderr)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        pass
    except purebpf.PurebpfError as error:  # such as a probe that this kernel lacks
        sys.exit(str(error))
