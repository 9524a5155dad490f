"""A large file is published window by window, once these are many as a whole, and so ever after."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from purebpf import objects
from purebpf.loader.load.load import load
from purebpf.observe.unwind.process_stacks import ProcessStacks
from purebpf.observe.unwind.table_filler import TableFiller
from purebpf.unwind.address_space import AddressSpace, CodeMapping
from purebpf.unwind.cfi_file import CfiFile
from purebpf.unwind.machine import X86_64
from purebpf.unwind.packed_rule import pack_rule
from purebpf.unwind.rows import NO_RULE
from purebpf.unwind.windows import cut_window
from tests.unit.unwind.cfi_builder import TEXT, Section, advance, cfa_offset

pytestmark = pytest.mark.needs("bpf", "task_pt_regs", "vmlinux_btf", "x86_64")

_BASE = 1 << 20
_FUNCTIONS = 20_000
_FEW, _MANY = 20, 80


def _large() -> CfiFile:
    section = Section()
    for n in range(_FUNCTIONS):
        section.fde(TEXT + 16 * n, 16, advance(1 + n % 3) + cfa_offset(16 + 8 * (n % 60)))
    cfi = section.cfi(text=16 * _FUNCTIONS)
    cfi.cache_key = "a" * 40
    assert (cfi.is_small, cfi.is_huge) == (False, False)
    return cfi


class _Stacks(ProcessStacks):
    """Knows one process with one file."""

    def __init__(self, cfi: CfiFile) -> None:
        super().__init__()
        self._cfi = cfi
        self._space = AddressSpace([CodeMapping(_BASE, _BASE + (1 << 20), _BASE - TEXT, "file")])

    def space(self, tgid: int) -> AddressSpace:
        return self._space

    def file(self, key: object) -> CfiFile:
        return self._cfi


class _Run:
    """Tables of one run."""

    def __init__(self, filler: TableFiller) -> None:
        self._filler = filler
        self._files = filler.tables.files
        filler.check_identity(1, 77)

    def ask(self, window: int) -> None:
        """A walk lacked a window; build nothing yet."""
        self._filler.publish(1, 1, 77, [_BASE + 1024 * window])

    def work(self, seconds: float = 0.005) -> bool:
        return self._filler.work(seconds)

    def there(self) -> dict[int, list[tuple[int, bytes]]]:
        """The windows that are published, as rows of (offset, packed rule)."""
        file = self._files._files["file"]
        shards = self._filler.tables._shards
        windows = {}
        for window in range(file.windows if file.index else 0):
            at = shards.read_word(file.index + window)
            if at:
                rows = shards.read(at + 1, shards.read_word(at))
                windows[window] = [(row & 2047, self._rule(row >> 11)) for row in rows]
        return windows

    def _rule(self, number: int) -> bytes:
        file = self._files._files["file"]
        assert number < file.rules_written
        return bytes(self._files._memory.view[8 * (file.rules + number) :][:8])


@contextmanager
def _running() -> Iterator[_Run]:
    spec = objects.spec("stack_walk").only("walk_sampled")
    with (
        load(spec) as loaded,
        _Stacks(_large()) as stacks,
        TableFiller(loaded.maps, stacks) as filler,
    ):
        yield _Run(filler)


def _expected() -> dict[int, list[tuple[int, bytes]]]:
    cfi = _large()
    packed = {}
    windows = {}
    for window in range(cfi.window_count):
        block = cut_window(cfi.rows, cfi.first_window + window)
        for row in block[1:]:
            number = row >> 11
            rule = cfi.table.rules[number]
            packed[number] = pack_rule(rule, X86_64, is_none=number == NO_RULE)
        windows[window] = [(row & 2047, packed[row >> 11]) for row in block[1:]]
    return windows


def test_few_windows_are_built_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    expected = _expected()
    with _running() as run:
        for window in range(_FEW):
            run.ask(3 * window)
            while run.work():
                pass
        assert run.there() == {3 * window: expected[3 * window] for window in range(_FEW)}


def test_many_windows_are_followed_by_the_rest_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    expected = _expected()
    with _running() as run:
        for window in range(_MANY):
            run.ask(window)
            run.work(1e-9)  # single ones come first
        assert len(run.there()) <= _MANY
        more = True
        window = len(expected)
        while more:  # and in between
            window -= 1
            if window > _MANY:
                run.ask(window)
            more = run.work(0.001)
        assert run.there() == expected
    with _running() as run:
        run.ask(5)
        while run.work():
            pass
        assert run.there() == expected
        run.ask(6)
        assert run.work() is False


def test_windows_do_not_disturb_a_file_that_is_being_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("purebpf.unwind.rows._MOST_KEPT", 50)
    cfi = _large()
    other = _large()
    alone = [other.window(other.first_window + n) for n in range(99)]
    made = []
    for _, number in zip(cfi.build(), range(99), strict=False):
        made.append(list(cfi.window(cfi.first_window + number)))
    assert len(made) > 3
    assert [[row & 2047 for row in block[1:]] for block in made] == [
        [row & 2047 for row in block[1:]] for block in alone[: len(made)]
    ]
    assert list(cfi.rows.starts) == list(_large().rows.starts)
