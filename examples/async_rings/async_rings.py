"""Two rings in one event loop: sudo python async_rings.py. Prints each command when it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import purebpf


class Commands:
    """Both halves of each command: records of two rings come in any order."""

    def __init__(self) -> None:
        self.started: dict[int, str] = {}
        self.ended: dict[int, Any] = {}

    def show(self, pid: int) -> None:
        """Print a line if both halves are there."""
        if pid in self.started and pid in self.ended:
            comm, end = self.started.pop(pid), self.ended.pop(pid)
            status = os.waitstatus_to_exitcode(end.status)
            print(f"{pid:7} {comm:16} {end.lived_ns / 1e6:10.1f} {status:6}", flush=True)


async def read_starts(starts: purebpf.Map, commands: Commands) -> None:
    """Read one ring for ever."""
    async for event in starts:
        commands.started[event.pid] = event.comm
        commands.show(event.pid)


async def read_ends(ends: purebpf.Map, commands: Commands) -> None:
    """Read the other."""
    async for event in ends:
        commands.ended[event.pid] = event
        commands.show(event.pid)


async def main() -> None:
    """Read both rings until Ctrl-C."""
    loop = asyncio.get_running_loop()
    stopped = loop.create_future()
    loop.add_signal_handler(signal.SIGINT, stopped.set_result, None)
    commands = Commands()
    with purebpf.load(Path(__file__).with_name("async_rings.bpf.o")) as obj:
        obj.attach()
        print(f"{'PID':>7} {'COMM':16} {'LIVED MS':>10} {'STATUS':>6}", flush=True)
        print("attached; Ctrl-C ends", file=sys.stderr, flush=True)
        async with asyncio.TaskGroup() as tasks:
            readers = [
                tasks.create_task(read_starts(obj.maps["starts"], commands)),
                tasks.create_task(read_ends(obj.maps["ends"], commands)),
            ]
            await stopped
            for reader in readers:
                reader.cancel()
        print(f"lost: {obj.globals['lost']}", file=sys.stderr)


if __name__ == "__main__":
    asyncio.run(main())
