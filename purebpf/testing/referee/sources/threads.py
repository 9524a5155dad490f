"""Three threads of Python, of which one awaits coroutines; each measures its own CPU time."""

import asyncio
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

Paths = dict[str, float]


def ref_spin_long() -> None:
    """Work for three units."""
    for number in range(9000):
        number * number  # noqa: B018 - the work


def ref_spin_short() -> None:
    """Work for one unit."""
    for number in range(3000):
        number * number  # noqa: B018 - the work


def ref_encodes() -> None:
    """Work in C."""
    json.dumps(list(range(4000)))


def ref_first() -> None:
    """Call the first leaf."""
    ref_spin_long()


def ref_second() -> None:
    """Call the second leaf, which a coroutine calls, too."""
    ref_spin_short()


async def ref_step() -> None:
    """Work inside the inner coroutine."""
    ref_spin_short()


async def ref_task() -> None:
    """Wait for the inner coroutine."""
    await ref_step()


async def all_rounds(rounds: int) -> None:
    """Run the coroutine again and again."""
    for _ in range(rounds):
        await ref_task()


def ref_awaits(rounds: int) -> None:
    """Run an event loop in this thread."""
    asyncio.run(all_rounds(rounds))


def measure(paths: Paths, name: str, call: Callable[[], object]) -> None:
    """Add the CPU time of a call to its path."""
    start = time.thread_time()
    call()
    paths[name] = paths.get(name, 0.0) + time.thread_time() - start


def repeat(paths: Paths, calls: dict[str, Callable[[], object]], rounds: int) -> None:
    """Measure calls in turns."""
    for _ in range(rounds):
        for name, call in calls.items():
            measure(paths, name, call)


def main(file: str, rounds: int) -> None:
    """Run the threads, and write what they measured."""
    paths: Paths = {}
    first: dict[str, Callable[[], object]] = {"ref_first;ref_spin_long": ref_first}
    second: dict[str, Callable[[], object]] = {
        "ref_second;ref_spin_short": ref_second,
        "ref_encodes": ref_encodes,
    }
    awaited = "ref_awaits;ref_task;ref_step;ref_spin_short"
    threads = [
        threading.Thread(target=repeat, args=(paths, first, rounds)),
        threading.Thread(target=repeat, args=(paths, second, rounds)),
        threading.Thread(target=measure, args=(paths, awaited, lambda: ref_awaits(rounds))),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    Path(file).write_text(json.dumps({"paths": paths, "cpu_s": time.process_time()}))
    while "REFEREE_STAYS" in os.environ:  # a profiler looks names up while it lives
        signal.pause()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
