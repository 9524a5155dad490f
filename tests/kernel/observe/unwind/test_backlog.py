"""Copies that come faster than they are finished wait, and none of them is forgotten."""

from __future__ import annotations

import select
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from purebpf.observe.unwind import user_stacks
from purebpf.observe.unwind.stack_finisher import MissedStack, StackFinisher
from purebpf.observe.unwind.table_filler import TableFiller
from purebpf.tools.profile import ProfileOptions, Profiler
from purebpf.unwind.unwinder import Unwound

pytestmark = pytest.mark.needs("bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "x86_64")


@pytest.fixture
def busy() -> Iterator[int]:
    command = [sys.executable, "-c", "while True: sum(range(1000))"]
    with subprocess.Popen(command) as child:
        yield child.pid
        child.kill()


@pytest.mark.parametrize(
    ("room", "fewest"), [pytest.param(64 << 20, 10, marks=pytest.mark.nightly), (1 << 16, 1)]
)
def test_each_copy_is_counted_however_late(
    busy: int, room: int, fewest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without time to finish any during the run; the smaller room is for some copies only."""
    monkeypatch.setattr(user_stacks, "_SLICE_S", 0.0)
    monkeypatch.setattr(user_stacks, "_TURN_S", 0.0)
    monkeypatch.setattr(user_stacks, "_MOST_WAITING", room)
    options = ProfileOptions(pids=(busy,), frequency=999, duration_s=3.0, call_graph="copy")
    with Profiler(options) as profiler:
        profiler.wait()
        walking = profiler._sampling.walking
        assert walking is not None
        late = waiting_in(walking)
        profile = profiler.stop()
    assert late >= fewest
    lost = {cause.name: cause.lost for cause in profile.loss.causes}
    assert profile.total == profile.about["counted"] > 10
    assert lost["map_full"] == 0


def test_what_waits_makes_a_descriptor_readable(busy: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_stacks, "_SLICE_S", 0.0)
    monkeypatch.setattr(user_stacks, "_TURN_S", 0.0)
    options = ProfileOptions(pids=(busy,), frequency=199, call_graph="copy")
    with Profiler(options) as profiler:
        walking = profiler._sampling.walking
        assert walking is not None
        backlog = walking.fds[-1]
        assert not readable(backlog)
        deadline = time.monotonic() + 60
        while (
            not walking._raw
            and not walking._new
            and not walking._waiting
            and time.monotonic() < deadline
        ):
            walking.drain()
        assert readable(backlog)
        profiler._sampling.events.disable()
        walking.finish()
        walking.drain()
        assert not readable(backlog)


def test_rings_are_emptied_while_the_finisher_is_imported(
    busy: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ring holds 60 copies: those of 60 ms at 999 Hz, and importing takes longer."""
    steps = 0

    def import_slowly(_: str) -> None:
        nonlocal steps
        steps += 1
        select.select(walking.fds[:-1], [], [], 10)

    monkeypatch.setattr(user_stacks, "import_module", import_slowly)
    options = ProfileOptions(pids=(busy,), frequency=199, call_graph="copy")
    with Profiler(options) as profiler:
        walking = profiler._sampling.walking
        assert walking is not None
        walking._make_finisher().close()
        assert steps == len(user_stacks._IMPORTED)
        assert len(walking._raw) >= steps


def test_what_processes_did_is_caught_up_with_when_their_mappings_are_read(busy: int) -> None:
    """They may have executed another program since, of which the mappings are."""
    times_ns = []
    with Profiler(ProfileOptions(pids=(busy,), frequency=199)) as profiler:
        walking = profiler._sampling.walking
        assert walking is not None
        catch_up = walking.catch_up
        assert catch_up is not None

        def count() -> None:
            times_ns.append(time.monotonic_ns())
            catch_up()

        walking.catch_up = count
        deadline = time.monotonic() + 60
        while not times_ns and time.monotonic() < deadline:
            walking.drain()
        program = walking._finisher._stacks._programs._running[busy]
        assert program.read_ns <= times_ns[-1]


def test_of_each_kind_the_first_copy_is_finished_before_others(
    busy: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It shows what all walks like it lack; the others have only to wait."""
    log: list[tuple[str, MissedStack]] = []
    announce, finish = StackFinisher.announce, StackFinisher.finish

    def note_announced(self: StackFinisher, missed: MissedStack) -> None:
        log.append(("announce", missed))
        announce(self, missed)

    def note_finished(self: StackFinisher, missed: MissedStack) -> Unwound:
        log.append(("finish", missed))
        return finish(self, missed)

    monkeypatch.setattr(StackFinisher, "announce", note_announced)
    monkeypatch.setattr(StackFinisher, "finish", note_finished)
    monkeypatch.setattr(TableFiller, "work", lambda *_: False)  # so that all are copied
    with Profiler(ProfileOptions(pids=(busy,), frequency=499, duration_s=1.0)) as profiler:
        profiler._sampling.prepare()
        profiler.wait()
        profiler.stop()
    first: set[int] = set()
    kinds = others = 0
    for what, missed in log:
        if what == "announce" and missed.identity:
            first.add(id(missed))
            kinds += 1
        elif what == "finish" and id(missed) in first:
            first.remove(id(missed))
        elif what == "finish":
            assert not first
            others += 1
    assert kinds
    assert others


def test_processes_are_met_before_any_other_work(
    busy: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that lives 50 ms has ended when a large file before it has been read."""
    raw: list[int] = []
    announce, finish = StackFinisher.announce, StackFinisher.finish
    options = ProfileOptions(pids=(busy,), frequency=999, call_graph="copy")
    with Profiler(options) as profiler:
        walking = profiler._sampling.walking
        assert walking is not None
        met: list[int] = []
        walking.on_missed = lambda tgid, *_: met.append(tgid)

        def note_announced(self: StackFinisher, missed: MissedStack) -> None:
            raw.append(len(walking._raw))
            announce(self, missed)

        def note_finished(self: StackFinisher, missed: MissedStack) -> Unwound:
            raw.append(len(walking._raw))
            return finish(self, missed)

        monkeypatch.setattr(StackFinisher, "announce", note_announced)
        monkeypatch.setattr(StackFinisher, "finish", note_finished)
        deadline = time.monotonic() + 60
        while len(walking._raw) < 3 and time.monotonic() < deadline:
            walking.collect()
            time.sleep(0.01)
        before = len(walking._raw)
        walking.finish()
    assert before >= 3
    assert met
    assert raw
    assert not any(raw)


def waiting_in(stacks: user_stacks.UserStacks) -> int:
    """Copies and pieces of a ring that nothing was made of yet."""
    return len(stacks._raw) + len(stacks._new) + len(stacks._first) + len(stacks._waiting)


def readable(fd: int) -> bool:
    return bool(select.select([fd], [], [], 0)[0])
