"""Files that are opened by openat(2), and what came of it: opensnoop of bcc, in one file."""

from __future__ import annotations

import errno
import sys

import purebpf

C = """
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

const volatile __u32 target_pid; // 0: every process

struct opened {
	__u32 pid;
	__s32 result;
	char comm[16];
	char path[256];
};
struct opened *opened_record;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 10240);
	__type(key, __u32);
	__type(value, __u64);
} paths SEC(".maps"); // of the call that a thread is in

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} opened SEC(".maps");
__u64 lost;

// They return 1: after 0, perf and others do not see the events.
SEC("tracepoint/syscalls/sys_enter_openat")
int on_start(struct trace_event_raw_sys_enter *ctx)
{
	__u64 id = bpf_get_current_pid_tgid(), path = ctx->args[1];
	__u32 thread = id;

	if (!target_pid || id >> 32 == target_pid)
		bpf_map_update_elem(&paths, &thread, &path, BPF_ANY);
	return 1;
}

SEC("tracepoint/syscalls/sys_exit_openat")
int on_end(struct trace_event_raw_sys_exit *ctx)
{
	__u64 id = bpf_get_current_pid_tgid(), *path;
	struct opened *record;
	__u32 thread = id;

	path = bpf_map_lookup_elem(&paths, &thread);
	if (!path)
		return 1;
	record = bpf_ringbuf_reserve(&opened, sizeof(*record), 0);
	if (record) {
		record->pid = id >> 32;
		record->result = ctx->ret;
		bpf_get_current_comm(record->comm, sizeof(record->comm));
		bpf_probe_read_user_str(record->path, sizeof(record->path), (void *)*path);
		bpf_ringbuf_submit(record, 0);
	} else {
		__sync_fetch_and_add(&lost, 1);
	}
	bpf_map_delete_elem(&paths, &thread);
	return 1;
}

char LICENSE[] SEC("license") = "GPL";
"""


def main(arguments: list[str]) -> None:
    """Print for some seconds (10): opensnoop_bcc.py [SECONDS [PID]]."""
    pid = int(arguments[1]) if len(arguments) > 1 else 0
    with purebpf.build.load_c(C, variables={"target_pid": pid}) as obj:
        obj.attach()
        print(f"{'PID':<8}{'COMM':<17}{'RESULT':<9}PATH", flush=True)
        for file in obj.maps["opened"].read(timeout=float(arguments[0]) if arguments else 10):
            result = errno.errorcode.get(-file.result, file.result)
            print(f"{file.pid:<8}{file.comm:<17}{result:<9}{file.path}", flush=True)
        print(f"lost: {obj.globals['lost']}", file=sys.stderr)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        pass
    except purebpf.PurebpfError as error:  # such as a probe that this kernel lacks
        sys.exit(str(error))
