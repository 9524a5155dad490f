"""Print every program that is started: sudo python execsnoop.py."""

from __future__ import annotations

import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import purebpf


def arguments(event: Any) -> str:
    """The arguments of a program as a shell would take them; `...` where they were cut."""
    data = event.arguments[: event.size]
    words = [word.decode(errors="replace") for word in data.split(b"\0")]
    cut = " ..." if event.size > len(data) else ""
    return shlex.join(words[:-1] if not words[-1] else words) + cut


def main() -> None:
    """Print until Ctrl-C."""
    print(f"{'PID':>7} {'PPID':>7} {'UID':>6} {'COMM':16} ARGUMENTS", flush=True)
    with purebpf.load(Path(__file__).with_name("execsnoop.bpf.o")) as obj:
        obj.attach()
        with suppress(KeyboardInterrupt):
            print("attached; Ctrl-C ends", file=sys.stderr, flush=True)
            for event in obj.maps["events"].read():
                start = f"{event.pid:7} {event.ppid:7} {event.uid:6} {event.comm:16}"
                print(start, arguments(event), flush=True)
        print(f"lost: {obj.globals['lost']}", file=sys.stderr)


if __name__ == "__main__":
    main()
