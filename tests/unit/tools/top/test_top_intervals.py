"""How many CPUs a table of top shows, where it begins and ends late."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

import pytest

from purebpf.measure.run import Ends
from purebpf.results import Labels, Profile
from purebpf.symbols.budget import Budget
from purebpf.symbols.frame import Frame
from purebpf.tools.profile import session
from purebpf.tools.profile.request import ProfileOptions
from purebpf.tools.top import screen as screens
from purebpf.tools.top.__main__ import main
from purebpf.tools.top.screens.base import Reading

LATE_S = 0.4
FREQUENCY = 10_000


class BusyCpu:
    """Samples of one CPU that is never idle, and that take some time to be read."""

    def __init__(self, _options: ProfileOptions, _command_pid: int = 0) -> None:
        self.budget = Budget()
        self.elapsed_s = 0.0
        self._ticks = 0

    def __enter__(self) -> Self:
        self._started = self._taken = time.monotonic()
        self._before = 0.0
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def wait(self, *_: object, at_most_s: float) -> bool:
        time.sleep(at_most_s)
        self._ticks += 1
        return self._ticks > 3

    def take(self) -> None:
        self._before, self.elapsed_s = self.elapsed_s, time.monotonic() - self._started
        time.sleep(LATE_S if self._ticks == 2 else 0)

    def last(self) -> Profile:
        samples = round((self.elapsed_s - self._before) * FREQUENCY)
        profile = Profile()
        profile.add((Frame("f", 0, "/a", 0, "user"),), (), samples, Labels("a", 1))
        return profile

    def close(self) -> None:
        pass

    def stop(self) -> Profile:
        return Profile()


class Shown:
    """A screen that appears late: sampling goes on."""

    by, sort = "function", "self"

    def __init__(self, busy: list[float]) -> None:
        time.sleep(LATE_S)
        self._busy = busy

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def wait(self, wait: Callable[..., bool], ends: Ends) -> bool:
        return wait(*ends.sources)

    def follow(self) -> None:
        pass

    def show(self, reading: Reading, _clock: str) -> None:
        self._busy.append(reading.heat)


def test_a_busy_cpu_is_one_cpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    busy: list[float] = []
    monkeypatch.setattr(session, "Profiler", BusyCpu)
    monkeypatch.setattr(screens, "screen", lambda *_, **__: Shown(busy))
    with (tmp_path / "out").open("w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        assert main(["-F", str(FREQUENCY), "-i", "0.1", "9"]) == 0
    assert busy == pytest.approx([1.0] * 3, rel=0.01)
