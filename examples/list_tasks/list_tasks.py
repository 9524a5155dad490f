"""List all threads in one system call, not in five for each: sudo python list_tasks.py [-p PID]."""

from __future__ import annotations

import argparse
from pathlib import Path

import purebpf


def main() -> None:
    """Print a line for each thread."""
    parser = argparse.ArgumentParser(description="List threads, without reading /proc.")
    parser.add_argument("-p", "--pid", type=int, help="of this process only (Linux 6.1)")
    options = parser.parse_args()

    only = {} if options.pid is None else {"pid": options.pid}
    print(f"{'PID':>7} {'TID':>7} {'PPID':>7} {'SLEPT':>9} {'PREEMPTED':>9} {'MAPS':>5} COMM")
    with (
        purebpf.load(Path(__file__).with_name("list_tasks.bpf.o")) as obj,
        obj.programs["on_task"].attach(**only) as link,
    ):
        assert isinstance(link, purebpf.IteratorLink)  # which tells a type checker of records()
        for thread in link.records("struct thread"):
            maps = "-" if thread.mappings < 0 else thread.mappings
            print(
                f"{thread.pid:7} {thread.tid:7} {thread.parent:7} {thread.slept:9} "
                f"{thread.preempted:9} {maps:>5} {thread.comm}"
            )


if __name__ == "__main__":
    main()
