"""Processes as they end, and with what: exitsnoop of bcc, in one file."""

from __future__ import annotations

import signal
import sys

import purebpf

C = """
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

struct ended {
	__u64 age_ns;
	__u32 pid;
	__u32 parent;
	__u32 code; // status << 8 | signal
	char comm[16];
};
struct ended *ended_record;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} ended SEC(".maps");
__u64 lost;

SEC("raw_tp/sched_process_exit")
int on_exit(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];
	__u64 id = bpf_get_current_pid_tgid();
	struct ended *record;

	if (id >> 32 != (__u32)id) // another thread than the first
		return 0;
	record = bpf_ringbuf_reserve(&ended, sizeof(*record), 0);
	if (!record) {
		__sync_fetch_and_add(&lost, 1);
		return 0;
	}
	record->age_ns = bpf_ktime_get_ns() - BPF_CORE_READ(task, start_time);
	record->pid = id >> 32;
	record->parent = BPF_CORE_READ(task, real_parent, tgid);
	record->code = BPF_CORE_READ(task, exit_code);
	bpf_get_current_comm(record->comm, sizeof(record->comm));
	bpf_ringbuf_submit(record, 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
"""


def main(arguments: list[str]) -> None:
    """Print until Ctrl-C, or for some seconds: exitsnoop.py [SECONDS]."""
    with purebpf.build.load_c(C) as obj:
        obj.attach()
        print(f"{'PID':<8}{'PARENT':<8}{'COMM':<17}{'AGE(s)':<9}ENDED BY", flush=True)
        for end in obj.maps["ended"].read(timeout=float(arguments[0]) if arguments else None):
            number = end.code & 0x7F
            how = signal.Signals(number).name if number else f"status {end.code >> 8}"
            age = f"{end.age_ns / 1e9:.2f}"
            print(f"{end.pid:<8}{end.parent:<8}{end.comm:<17}{age:<9}{how}", flush=True)
        print(f"lost: {obj.globals['lost']}", file=sys.stderr)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        pass
    except purebpf.PurebpfError as error:  # such as a probe that this kernel lacks
        sys.exit(str(error))
