"""What hostile files and jitdumps cost a whole profile: a slice, and the rest is named."""

from __future__ import annotations

import gc
import os
import resource
import struct
import time
from pathlib import Path

import pytest

from purebpf.observe.symbols.jit_dumps import JitDumps
from purebpf.observe.symbols.symbolizer import Symbolizer
from purebpf.results import Loss
from purebpf.results.shape.naming_loss import with_naming
from purebpf.symbols.address_spaces import AddressSpaces
from purebpf.symbols.budget import FILE, PROCESS, Allowance, Budget, OverBudgetError
from purebpf.symbols.frame import Frame, Reason, Unknown
from purebpf.symbols.longest_name import LONGEST_NAME
from tests.support.builders.hollow_file import HollowFile, Part

TEXT = 0x1000
BASE = 0x10000000
PID = 4_194_304 + 1


@pytest.fixture(autouse=True)
def memory_limit():
    """No test of this file may take more than a gigabyte beyond what is in use."""
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    old = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + (1 << 30), old[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, old)


def symbol(name, value, size=16):
    return struct.pack("<IBBHQQ", name, 0x12, 0, 1, value, size)


def named(path: Path, strings=b"\0main\0", *, size: int | None = None) -> Path:
    file = HollowFile(
        Part(".text", flags=6, address=TEXT, size=0x10000, kind=8),
        Part(".symtab", data=symbol(1, TEXT), kind=2, link=".strtab", entry_size=24),
        Part(".strtab", data=strings, kind=3),
        size=size,
    )
    file.write(str(path))
    return path


def linked(path: Path, name: bytes) -> Path:
    link = name + bytes(4 - len(name) % 4) + struct.pack("<I", 0x12345678)
    HollowFile(Part(".gnu_debuglink", data=link)).write(str(path))
    return path


def symbolizer(paths, budget=None, pids=(PID,)):
    """One that knows processes which map these files one after the other, a page each."""
    spaces = AddressSpaces()
    for pid in pids:
        text = "".join(
            f"{BASE + (n << 16):x}-{BASE + (n << 16) + 0x10000:x} r-xp 00000000 00:00 "
            f"{os.stat(path).st_ino} {path}\n"
            for n, path in enumerate(paths)
        )
        spaces.snapshot(pid, text)
    return Symbolizer(spaces, read_processes=False, budget=budget)


def test_debug_link_to_a_file_of_300_gigabytes(tmp_path):
    named(tmp_path / "large.debug", size=300 << 30)
    hostile = linked(tmp_path / "hostile", b"large.debug")
    honest = named(tmp_path / "honest")
    names = symbolizer([hostile, honest])
    before = time.process_time()
    found, other = names.user(PID, [BASE, BASE + 0x10000])
    assert time.process_time() - before < 2
    assert isinstance(found, Unknown)
    assert isinstance(other, Frame)


def test_debug_link_to_a_file_that_takes_long_to_read(tmp_path):
    named(tmp_path / "large.debug", size=1 << 30)
    hostile = linked(tmp_path / "hostile", b"large.debug")
    honest = named(tmp_path / "honest")
    names = symbolizer([hostile, honest], Budget({FILE: Allowance(1 << 24, 60.0)}))
    found, other = names.user(PID, [BASE, BASE + 0x10000])
    assert found.reason is Reason.OVER_BUDGET
    assert found.detail == f"file {hostile} used its 16 MiB of naming"
    assert isinstance(other, Frame)
    loss = with_naming(Loss(), names.budget)
    assert [(cause.name, cause.lost) for cause in loss.causes] == [
        ("names_skipped", 1),
        ("names_cut", 0),
    ]
    assert loss.causes[0].what == f"1 address was not looked up: {found.detail}"
    assert loss.any


def test_a_process_with_many_such_files(tmp_path):
    named(tmp_path / "large.debug", size=1 << 24)
    hostile = [linked(tmp_path / f"hostile{n}", b"large.debug") for n in range(20)]
    names = symbolizer(hostile, Budget({PROCESS: Allowance(1 << 26, 60.0)}), pids=(PID, PID + 1))
    found = names.user(PID, [BASE + (n << 16) for n in range(20)])
    reasons = [each.reason for each in found]
    assert reasons == [Reason.STRIPPED] * 3 + [Reason.OVER_BUDGET] * 17
    assert names.user(PID + 1, [BASE + (19 << 16)])[0].reason is Reason.STRIPPED
    assert names.budget.skipped == 17


def test_a_stopped_budget_ends_naming(tmp_path):
    first, second = named(tmp_path / "first"), named(tmp_path / "second")
    names = symbolizer([first, second])
    assert isinstance(names.user(PID, [BASE])[0], Frame)
    names.budget.stop()
    known, unknown = names.user(PID, [BASE, BASE + 0x10000])
    assert isinstance(known, Frame)
    assert unknown.reason is Reason.INTERRUPTED
    assert "naming was interrupted" in with_naming(Loss(), names.budget).causes[0].what


def test_a_name_that_is_cut_says_so(tmp_path):
    names = symbolizer([named(tmp_path / "long", b"\0" + b"x" * (1 << 20))])
    (found,) = names.user(PID, [BASE])
    assert found.name == "x" * (LONGEST_NAME - 1) + "…"
    assert with_naming(Loss(), names.budget).causes[1].lost == 1


@pytest.mark.slow
def test_the_cost_of_many_processes_is_linear(tmp_path):
    path = named(tmp_path / "file")

    def taken(count: int) -> float:
        pids = range(PID, PID + count)
        names = symbolizer([path], pids=pids)
        before = time.process_time()
        for pid in pids:
            names.user(pid, [BASE], f"comm{pid}")
        return time.process_time() - before

    gc.disable()  # as commands do: looking for cycles costs more the more objects there are
    try:
        few, many = taken(4_000), taken(32_000)
    finally:
        gc.enable()
    assert many < 16 * few, (few, many)


def test_large_jitdumps_are_read_within_the_budget(tmp_path):
    """Each as large as may be: what is kept of all has a limit, and one process pays."""
    header = struct.pack("<4sIIIIIQQ", b"DTiJ", 1, 40, 62, 0, 1, 0, 0)
    row = struct.pack("<IIQIIQQQQ", 0, 16 + 40 + 2, 0, 1, 1, 0, 0, 4, 0) + b"f\0"
    text = ""
    for n in range(6):
        path = tmp_path / f"jit-{n}.dump"
        path.write_bytes(header + row * (1 << 16))
        text += f"{BASE + 4096 * n:x}-{BASE + 4096 * (n + 1):x} r-xp 0 00:00 0 {path}\n"
    spaces = AddressSpaces()
    spaces.snapshot(PID, text)
    budget = Budget({PROCESS: Allowance(10 << 20, 60.0)})
    dumps = JitDumps(budget)
    with pytest.raises(OverBudgetError, match=f"process {PID}"), budget.on_behalf(process=PID):
        dumps.read(spaces.files(PID), (PID,), lives=False)
    kept = [len(dump) for dump in dumps._dumps.values()]
    assert 1 << 16 < sum(kept) < 4 << 16


def test_the_clock_is_read_for_each_stack_not_for_each_address(tmp_path):
    reads = 0

    def clock():
        nonlocal reads
        reads += 1
        return time.thread_time()

    names = symbolizer([named(tmp_path / "honest")], Budget(clock=clock))
    names.user(PID, [BASE])  # reads the file
    reads = 0
    found = names.user_stack(PID, range(BASE + 2, BASE + 16))
    assert [each.name for each in found] == ["main"] * 14
    assert reads == 2


def test_an_account_that_is_empty_in_the_middle_of_a_stack_pays_for_no_more(tmp_path):
    budget = Budget({PROCESS: Allowance(1 << 30, 1.0)}, lambda: now)
    now = 0.0
    names = symbolizer([named(tmp_path / "one"), named(tmp_path / "two")], budget)
    names.user(PID, [BASE])  # one of the files is known
    look_up = names._look_up

    def slow(*arguments):
        nonlocal now
        now += 0.6
        return look_up(*arguments)

    names._look_up = slow
    found = names.user(PID, [BASE + 1, BASE + 0x10000, BASE + 0x10001, BASE + 2])
    assert [isinstance(each, Frame) for each in found] == [True, False, False, False]
    assert {each.reason for each in found[1:]} == {Reason.OVER_BUDGET}
    assert budget.skipped == 3
    assert budget.exceeded == [f"process {PID} used its 1 s of naming"]
