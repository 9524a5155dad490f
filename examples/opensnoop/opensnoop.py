"""Print every file that is opened: sudo python opensnoop.py [-p PID] [-x]."""

from __future__ import annotations

import argparse
import errno
import sys
from contextlib import suppress
from pathlib import Path

import purebpf


def main() -> None:
    """Print until Ctrl-C."""
    parser = argparse.ArgumentParser(description="Print every file that is opened.")
    parser.add_argument("-p", "--pid", type=int, default=0, help="this process only")
    parser.add_argument("-x", "--failed", action="store_true", help="only what failed")
    options = parser.parse_args()

    spec = purebpf.read_object(Path(__file__).with_name("opensnoop.bpf.o"))
    spec = spec.set(target_pid=options.pid, failed_only=options.failed)
    print(f"{'PID':>7} {'COMM':16} {'FD':>4} {'ERRNO':8} PATH", flush=True)
    with purebpf.load(spec) as obj:
        obj.attach()
        with suppress(KeyboardInterrupt):
            print("attached; Ctrl-C ends", file=sys.stderr, flush=True)
            for event in obj.maps["events"].read():
                failed = event.result < 0
                fd = "-" if failed else event.result
                error = errno.errorcode.get(-event.result, str(-event.result)) if failed else ""
                print(f"{event.pid:7} {event.comm:16} {fd:>4} {error:8} {event.path}", flush=True)
        print(f"lost: {obj.globals['lost']}", file=sys.stderr)


if __name__ == "__main__":
    main()
