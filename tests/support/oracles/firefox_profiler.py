"""Firefox Profiler's own reader, without a browser: npm's @firefox-devtools/profiler-cli."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.oracles.browser import until

__all__ = ["Opened", "opened"]


class Opened(NamedTuple):
    """A profile that its daemon has read."""

    environment: dict[str, str]

    def threads(self) -> list[dict[str, Any]]:
        """Each thread; the heaviest first."""
        found: list[dict[str, Any]] = self._asked("thread", "list")["threads"]
        return found

    def samples(self, thread: str = "t-0") -> tuple[int, dict[str, tuple[int, int]]]:
        """How many a thread has, and by function those of itself and with what it called."""
        found = self._asked("thread", "samples", "--thread", thread)
        functions = {
            each["name"].rpartition("!")[2]: (each["selfSamples"], each["totalSamples"])
            for each in found["topFunctionsByTotal"]
        }
        return found["categoryBreakdown"]["totalSamples"], functions

    def _asked(self, *question: str) -> Any:
        return json.loads(_told(self.environment, *question, "--json"))


@contextmanager
def opened(path: str | Path, home: Path) -> Iterator[Opened]:
    """A file that it opens; `home` is where its daemon may keep things."""
    environment = {**os.environ, "HOME": str(home)}

    def loads() -> bool:
        """Whether its daemon was ready in time; on a busy machine it often is not."""
        command = ["profiler-cli", "load", str(path)]
        done = subprocess.run(command, capture_output=True, check=False, env=environment)
        return done.returncode == 0

    try:
        until(loads)
        yield Opened(environment)
        _told(environment, "stop", "--all")
    finally:
        _end_daemons(str(path))


def _end_daemons(path: str) -> None:
    """End the daemons of a file: those that were not ready in time go on for ever."""
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if b"--daemon" in words and os.fsencode(path) in words:
                os.kill(int(pid), signal.SIGTERM)


def _told(environment: dict[str, str], *arguments: str) -> str:
    command = ["profiler-cli", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment
    ).stdout
