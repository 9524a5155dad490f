"""Two runs of the live tests beside each other on one machine, which share the test files.

Each process of pytest collects all tests, the second one the folders in another order, and the one
that comes to a file first runs it. A test marked `alone` runs while the other process waits between
two tests.

tests.vm.matrix starts the processes: PUREBPF_LANE is the number of each, and all that a process
starts inherits it; PUREBPF_LANES is the folder that both write to.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

__all__ = ["Lane", "beside", "held_by_others"]

_SETTING = "PUREBPF_LANE"


class Lane:
    """This process, as one of those that share the tests.

    Args:
        folder: the folder that they share.
        number: the number of this one, from 1.
    """

    def __init__(self, folder: Path, number: int) -> None:
        self._folder = folder
        self._number = number
        self._files: dict[str, bool] = {}
        self._turns = itertools.count(1)
        self._gate = os.open(folder / "gate", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._room = os.open(folder / "room", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    @classmethod
    def of_environment(cls) -> Lane | None:
        """The lane that tests.vm.matrix made this process; the tests that tests start are none."""
        folder = os.environ.pop("PUREBPF_LANES", "")
        return cls(Path(folder), int(os.environ[_SETTING])) if folder else None

    def close(self) -> None:
        """Close the files of the locks."""
        os.close(self._gate)
        os.close(self._room)

    def run(self, session: pytest.Session) -> None:
        """Run the tests of the files that no other lane takes."""
        ours = self._ours(session.items)
        item = next(ours, None)
        while item is not None:
            following = next(ours, None)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
            item = following

    def _ours(self, items: list[pytest.Item]) -> Iterator[pytest.Item]:
        return (item for item in items if self._takes(item.nodeid.partition("::")[0]))

    def _takes(self, file: str) -> bool:
        if file not in self._files:
            try:
                (self._folder / f"of {file.replace('/', '+')}").touch(exist_ok=False)
            except FileExistsError:
                self._files[file] = False
            else:
                self._files[file] = True
        return self._files[file]

    @contextmanager
    def turn(self, item: pytest.Item) -> Iterator[None]:
        """One test, and no other beside it where it is marked `alone`."""
        alone = item.get_closest_marker("alone") is not None
        # whoever waits for the room stands in the gate, so that nobody enters before him again
        fcntl.flock(self._gate, fcntl.LOCK_EX)
        fcntl.flock(self._room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(self._gate, fcntl.LOCK_UN)
        self._tell(f"{next(self._turns)} {item.nodeid}")
        begun, used = time.monotonic(), _cpu_s()
        try:
            yield
        finally:
            self._tell("")
            times = f"{begun:.3f} {time.monotonic():.3f} {_cpu_s() - used:.2f}"
            fcntl.flock(self._room, fcntl.LOCK_UN)
            with (self._folder / f"turns {self._number}").open("a") as turns:
                turns.write(f"{times} {item.nodeid}\n")

    def _tell(self, test: str) -> None:
        (self._folder / f"in {self._number}").write_text(test)

    def end(self) -> set[str]:
        """Tell that all of this test is done but its checks; return `others`."""
        self._tell("")
        return self.others()

    def others(self) -> set[str]:
        """The tests that the other lanes are in, each with a number that is new each time."""
        files = [each for each in self._folder.glob("in *") if each.name != f"in {self._number}"]
        return {test for file in files if (test := file.read_text())}


def _cpu_s() -> float:
    """The CPU time of this process and of its children that have ended."""
    return sum(os.times()[:4])


class _Turn(NamedTuple):
    lane: str
    begun: float
    ended: float
    test: str


def beside(folder: Path, tests: Iterable[str]) -> dict[str, list[str]]:
    """The tests that other lanes ran while each of `tests` ran."""
    turns = []
    for file in folder.glob("turns *"):
        for line in file.read_text().splitlines():
            begun, ended, _, test = line.split(" ", 3)
            turns.append(_Turn(file.name, float(begun), float(ended), test))
    return {
        test: [
            other.test
            for own in turns
            for other in turns
            if own.test == test and own.lane != other.lane
            if own.begun < other.ended and other.begun < own.ended
        ]
        for test in tests
    }


def held_by_others() -> dict[str, set[str]]:
    """The programs, maps and links that processes hold which no test of this lane has started.

    A process belongs to the lane that its environment or that of an ancestor names. One without,
    in the session of this process, belongs to this lane: it may be a test's that has left it.
    """
    found: dict[str, set[str]] = {"program": set(), "map": set(), "link": set()}
    own = os.environ.get(_SETTING)
    if own is None:
        return found
    lanes: dict[int, str] = {}
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            with suppress(OSError):
                _add_held(int(entry), own, lanes, found)
    return found


def _add_held(pid: int, own: str, lanes: dict[int, str], found: dict[str, set[str]]) -> None:
    """Add what a process holds, if it belongs to others."""
    held = [
        name
        for name in os.listdir(f"/proc/{pid}/fd")
        if os.readlink(f"/proc/{pid}/fd/{name}").startswith("anon_inode:bpf")
    ]
    if not held or (_lane_of(pid, lanes) or own * (os.getsid(pid) == os.getsid(0))) == own:
        return
    for name in held:
        for line in Path(f"/proc/{pid}/fdinfo/{name}").read_text().splitlines():
            field, _, value = line.partition("\t")
            if field in _FIELDS:
                found[_FIELDS[field]].add(value.strip())


def _lane_of(pid: int, known: dict[int, str]) -> str:
    """The lane of a process; "" for one that no lane has started."""
    if pid not in known:
        known[pid] = ""
        with suppress(OSError):
            variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            begin = f"{_SETTING}=".encode()
            named = [each[len(begin) :] for each in variables if each.startswith(begin)]
            if named:
                known[pid] = named[-1].decode()
            else:
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                parent = int(fields[1])
                known[pid] = _lane_of(parent, known) if parent > 1 else ""
    return known[pid]


_FIELDS = {"prog_id:": "program", "map_id:": "map", "link_id:": "link"}
