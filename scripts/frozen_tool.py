"""What `scripts/clean_install.sh` freezes: a tool that counts its own calls, and all commands."""

from __future__ import annotations

import os
import platform
import sys

import purebpf
from purebpf.__main__ import main

CALLS = 23
GETPRIORITY = {"x86_64": 140, "aarch64": 141}


def count(path: str) -> None:
    """Load an object, attach its tracepoint, print how many of 23 calls it counted."""
    spec = purebpf.read_object(path)
    spec = spec.set(target_pid=os.getpid(), target_call=GETPRIORITY[platform.machine()])
    with purebpf.load(spec.only("on_tracepoint")) as obj:
        obj.attach()
        for _ in range(CALLS):
            os.getpriority(os.PRIO_PROCESS, 0)
        print("counted", obj.globals["tracepoint_hits"])


if __name__ == "__main__":
    if sys.argv[1:2] == ["count"]:
        count(sys.argv[2])
    else:
        sys.exit(main())
