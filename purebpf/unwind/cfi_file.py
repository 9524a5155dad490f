"""The call frame information of one file: rows, windows, function starts, read as they are needed.

Files with few rows are read whole. Of large ones only the FDEs of the windows asked for are read,
found by .eh_frame_hdr; a large file without it costs one pass, to make an index.

Whatever the bytes, nothing here raises (but the given `read` may): unreadable entries have no rule,
or the rule `UNSUPPORTED`. A budget in proportion to the file's size bounds all work on it; long
work comes as an iterator that yields every few milliseconds.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Generator, Iterator

from purebpf.errors import FormatError
from purebpf.tuples import NamedTuple
from purebpf.unwind.budget import Budget, OverBudgetError
from purebpf.unwind.elf_frames import (
    ElfFile,
    Frames,
    Segment,
    debug_frame,
    eh_frame,
    only_code,
    read_address,
    text_of,
)
from purebpf.unwind.entries import Cie, EntryError, Fde
from purebpf.unwind.fde_index import FdeIndex, scan_index
from purebpf.unwind.gaps import FrameReader, Gap, Gaps
from purebpf.unwind.interpreter import row_at
from purebpf.unwind.joined_sections import join_sections
from purebpf.unwind.machine import MACHINES, X86_64, Machine
from purebpf.unwind.rows import Entries, Rows, RuleTable, finish
from purebpf.unwind.rule import DEPTH_FRAMELESS, DEPTH_UNKNOWN, Row
from purebpf.unwind.start_code import find_start_code
from purebpf.unwind.start_entries import made_entry, outermost_entry
from purebpf.unwind.uncovered_rows import StackDepths, add_depths, code_rule, judge_gaps, read_gaps
from purebpf.unwind.window_file import Source
from purebpf.unwind.windows import WINDOW, WINDOW_BITS, cut_window, cutting_all

__all__ = ["CfiFile", "Function", "WholeWindows"]

_SMALL = 360 << 10
"""Bytes of a section of about 64 k rows, each of which takes 5.3 bytes on average."""
_LARGE = 16 << 20
"""The same of 3 M rows. That of gcc's cc1plus has 2.6 MB. Those of rustc and LLVM have 6 to 8 MB,
which take 2 s, once, and 7 MB.
"""
_SMALL_TEXT = 4 << 20
"""Bytes of code without any entry, which has to be read to be judged."""
_READ_AT_ONCE = 1 << 18
_READ_LATER = 1 << 20
"""Bytes of code without entries, of which the instructions are read with the whole file (0.5 s),
and later (2 s). libcrypto and node have 0.2 MB, libx264 has 0.4, libdav1d and libavcodec have 1 MB.
"""
_SLICE_STEPS = 1 << 13
"""Bytes of instructions between two yields: about 4 ms."""
_STEPS = 1 << 18
_STEPS_A_BYTE = 4
_WINDOW_STEPS = 1 << 18
_MOST_WINDOWS = 1 << 20
_ZERO_LENGTH = 64
"""FDEs without code that a search passes over: linkers leave those of discarded sections."""
_MOST_FIRST_CODE = 256
_WORD = (1 << 64) - 1


class Function(NamedTuple):
    """The start and the end of a function, or of a part of it: addresses in the file."""

    start: int
    end: int


class WholeWindows(NamedTuple):
    """All windows of a file. `places[n]` is 1 + where in `blocks` the one of `first + n` is."""

    first: int
    places: array[int]
    blocks: array[int]


class CfiFile:
    """Rules of a file by its own addresses (as linked: subtract `load_bias` from a process's).

    Args:
        image: the file's headers; an `ElfImage` is one.
        depths: stack depths for a file without rules, see `CfiFile.stack_depth`.
        cache_key: the key under which a cache may keep its windows; "": no cache.
        table: the rules of the same file, read before, which keep their ids.
        read_frames: frames in code of x86-64 without entries, see `Gaps`.

    Attributes:
        machine: None if it is one that we do not unwind; then there are no rules.
        text: the addresses that its code lies between.
        table: the rules that rows and windows refer to by their ids.
        broken: entries that could not be read.
        exhausted: whether the file takes more work than any real file of its size.
        has_unread: whether `whole` lacks rules of code without entries, see `reading`.
    """

    def __init__(
        self,
        image: ElfFile,
        depths: StackDepths | None = None,
        cache_key: str = "",
        table: RuleTable | None = None,
        read_frames: FrameReader | None = None,
    ) -> None:
        self._image = image
        self.cache_key = cache_key
        self._depths = depths
        machine = MACHINES.get(image.machine) if image.order == "<" else None
        is_plain = machine is not None and image.is64 == (machine.word == 8)  # or else x32
        self.machine = machine = machine if is_plain else None
        self.text = text_of(image)
        self.table = table or (RuleTable(machine.fp, machine.ra) if machine else RuleTable(0, 0))
        self.exhausted = False
        self.has_unread = False
        self._frames: Frames | None = None
        self._index: FdeIndex | None = None
        self._budget = Budget(_STEPS)
        self._prepared = False
        self._rows: Rows | None = None
        self._start_code: tuple[Fde, ...] = ()
        is_judged = depths is None and machine is X86_64
        self._gaps = Gaps(self.code, self._gap, read_frames) if is_judged else None

    def rest(self) -> None:
        """Drop data that can be read again; rules keep their ids. Not while `build` is under
        way.
        """
        self._frames = self._index = self._rows = None
        self._prepared = False
        self.table.forget()

    @property
    def only_code(self) -> Segment | None:
        """The only executable segment; None if there are several."""
        return only_code(self._image.segments)

    @property
    def broken(self) -> int:
        """Entries that could not be read."""
        return self._frames.section.broken if self._frames else 0

    @property
    def uses_eh_frame(self) -> bool:
        """True if the rules are from .eh_frame, False if from .debug_frame."""
        self._prepare()
        return self._frames is not None and not self._frames.section.is_debug

    @property
    def is_small(self) -> bool:
        """True if it is best read whole."""
        self._prepare()
        if self._depths is not None:  # those of all functions are many, and not in `whole`
            return False
        if self._frames is None:
            return self.text.end - self.text.start <= _READ_AT_ONCE
        return self._frames.section.size <= _SMALL

    @property
    def is_huge(self) -> bool:
        """True if it is better never read whole."""
        self._prepare()
        if self._depths is not None:
            return True
        if self._frames is None:
            return self.text.end - self.text.start > _SMALL_TEXT
        return self._frames.section.size > _LARGE

    @property
    def has_rules(self) -> bool:
        """True if there are any entries. Go and some builds of Rust have none."""
        self._prepare()
        return self._index is not None and bool(len(self._index.starts))

    @property
    def source(self) -> Source:
        """The source of its windows."""
        self._prepare()
        section = self._frames.section if self._frames else None
        return Source(*self.text, section.address if section else 0, section.size if section else 0)

    def prepare(self) -> Iterator[None]:
        """Find the section and its index. Only a large file without an index takes long."""
        if self._prepared or self.machine is None:
            return
        yield from self._find()
        self._prepared = True  # unless `read` raised: then it is tried again
        self._start_code = tuple(self._find_start_code(self.machine))

    def _find(self) -> Iterator[None]:
        # Go's .debug_frame has a caller for runtime.goexit, which begins each stack uncalled, and
        # for runtime.systemstack, which changes stacks; frame pointers lead past both.
        found: list[tuple[Frames, FdeIndex]] = []
        for find in (eh_frame,) if self._depths else (eh_frame, debug_frame):
            yield from self._find_section(find, found)
        if found:
            self._frames, self._index = found[0]
        if len(found) > 1:
            joined = join_sections(found[0], found[1], self._covers)
            self._frames, self._index = joined

    def _find_section(
        self, find: Callable[[ElfFile], Frames | None], found: list[tuple[Frames, FdeIndex]]
    ) -> Iterator[None]:
        """Append a section and its index to `found`, if it has entries."""
        try:
            frames = find(self._image)
        except FormatError:
            return
        if frames is None:
            return
        self._budget.left = max(0, self._budget.left) + _STEPS_A_BYTE * frames.section.size
        made = [] if frames.table is None else [frames.table]
        if not made:
            try:
                yield from scan_index(frames.section, self._budget, made)
            except (OverBudgetError, FormatError):
                self.exhausted = True
        if made and len(made[0].starts):
            found.append((frames, made[0]))
        elif self._frames is None:
            self._frames = frames

    def _covers(self, address: int) -> bool:
        """Return True if the preferred section has an entry for an address."""
        at = -1 if self._index is None else self._index.last(address)
        fde = self._entry(at, self._budget) if at >= 0 else None
        return fde is not None and fde.start <= address < fde.end

    def _find_start_code(self, machine: Machine) -> Iterator[Fde]:
        """Yield entries for code that starts stacks, where the file has none for it."""
        if self._depths is not None:
            return
        start = self._image.entry
        near = self._end_of_first_code(start) if start else 0
        if near:
            yield outermost_entry(start, near, machine)
        if machine is not X86_64:
            return
        for found in find_start_code(self.code, start, *self.text):
            last = self._last(found.end - 1)
            if (found.start != start or not near) and (last is None or last.end <= found.start):
                yield made_entry(found, machine)

    def _end_of_first_code(self, start: int) -> int:
        """The end of the code that the kernel starts, where the next function is near; or 0.

        It is the outermost function of every stack. In ld.so it is assembly without rules, as are
        the first microseconds of most programs' lives. It ends where the next function begins, if
        that is near: otherwise other code without rules may follow.
        """
        index = self._index
        if index is None:
            return 0
        last = self._last(start)
        at = index.last(start) + 1
        after = self._entry(at, self._budget) if at < len(index.starts) else None
        if last is None or after is None or last.end > start:
            return 0
        return after.start if after.start - last.end <= _MOST_FIRST_CODE else 0

    def _prepare(self) -> None:
        for _ in self.prepare():
            pass

    def code(self, address: int, size: int) -> bytes:
        """Bytes of the file by their address; fewer where its segment ends."""
        try:
            return read_address(self._image, address, size)
        except FormatError:
            return b""

    def stack_depth(self, address: int) -> int | None:
        """Bytes that the function at an address has taken from the stack; None: not known.

        `DEPTH_FRAMELESS`, `DEPTH_UNKNOWN`: not known, and it does not keep a frame pointer either.
        """
        if self._depths is not None:
            return self._depths.depth(address)
        if self._gaps is None or self.fde(address) is not None or self._gaps.keeps(address):
            return None
        return DEPTH_UNKNOWN if self._gaps.are_read else DEPTH_FRAMELESS

    def _gap(self, address: int) -> Gap:
        """The addresses without entries around one of them."""
        start, end = self.text
        last, index = self._last(address), self._index
        if last is not None:
            start = last.end
        if index is not None:
            following = index.last(address) + 1
            if following < len(index.starts):
                end = min(end, index.starts[following] + index.base)
        return Gap(start, end)

    # One address

    def fde(self, address: int) -> Fde | None:
        """The entry with the rules of an address."""
        for fde in (self._last(address), *self._start_code):
            if fde is not None and fde.start <= address < fde.end:
                return fde
        return None

    def function(self, address: int) -> Function | None:
        """Return the range of the code around an address, by its entry, without symbols.

        A cold part that a compiler split off counts as a separate function; all stubs of a PLT
        count as one.
        """
        fde = self.fde(address)
        return Function(fde.start, fde.end) if fde else None

    def gap(self, address: int) -> Function:
        """Return the addresses around one that has no entry, up to the nearest entries."""
        return Function(*self._gap(address))

    def row(self, address: int) -> Row | None:
        """The rules of all registers at an address; None if there are none, or none that we know.

        `fde` tells these apart.
        """
        fde = self.fde(address)
        if fde is None:
            return self._row_of_gap(address)
        try:
            self._budget.spend(1 + (len(fde.code) >> 3))
        except OverBudgetError:
            self.exhausted = True
            return None
        return row_at(fde, address)

    def _row_of_gap(self, address: int) -> Row | None:
        """The rules of code without an entry, by its instructions."""
        gaps, machine = self._gaps, self.machine
        inside = self.text.start <= address < self.text.end
        if gaps is None or machine is None or not inside or gaps.keeps(address):
            return None
        frame = gaps.frame(address)
        if frame is None:
            return None
        register, cfa, fp, ra, _ = code_rule(*frame)
        registers = {machine.ra: ra} | ({} if fp is None else {machine.fp: fp})
        return Row(register, cfa, registers, machine.ra, is_signal=False)

    def _last(self, address: int) -> Fde | None:
        """The last entry that starts at or before an address and has code."""
        self._prepare()
        if self._index is None or not self.text.start <= address < self.text.end:
            return None
        last = self._index.last(address)
        for at in range(last, max(-1, last - _ZERO_LENGTH), -1):
            fde = self._entry(at, self._budget)
            if fde is not None:
                return fde
        return None

    def _entry(self, at: int, budget: Budget) -> Fde | None:
        """The FDE at an index, if it can be read and has code in the text."""
        assert self._frames is not None
        assert self._index is not None
        try:
            budget.spend(1)
            fde, _ = self._frames.section.fde(self._index.offset(at), budget)
        except EntryError:
            return None
        except (OverBudgetError, FormatError):
            self.exhausted = True
            return None
        return fde if self._is_code(fde) else None

    def _is_code(self, fde: Fde) -> bool:
        return fde.start < fde.end <= _WORD and self.text.start <= fde.start < self.text.end

    # Windows

    @property
    def first_window(self) -> int:
        """Number of the window that the text starts in."""
        return self.text.start >> WINDOW_BITS

    @property
    def window_count(self) -> int:
        """The number of windows of the text; 0 if they are too many for a real file."""
        count = (self.text.end + WINDOW - 1 >> WINDOW_BITS) - self.first_window
        return count if count <= _MOST_WINDOWS else 0

    def window(self, number: int) -> array[int]:
        """The block of one window, from the entries around it."""
        self._prepare()
        rows = self._rows_around(number) if self._rows is None else self._rows
        if self._depths is not None:
            start = number << WINDOW_BITS
            rows = add_depths(rows, self.table, self._depths, start, start + WINDOW)
        elif self._rows is None:
            start = number << WINDOW_BITS
            rows, _ = finish(self._judge(rows, start, start + WINDOW, WINDOW))
        return cut_window(rows, number)

    def _rows_around(self, number: int) -> Rows:
        start = number << WINDOW_BITS
        end = start + WINDOW
        budget = Budget(min(_WINDOW_STEPS, max(0, self._budget.left)))
        granted = budget.left
        fdes = self._entries_around(start, end, budget) if self._index is not None else []
        fdes += [fde for fde in self._start_code if fde.start < end and fde.end > start]
        rows = self._interpret(fdes, budget)
        self._budget.left -= granted - budget.left
        return rows

    def _entries_around(self, start: int, end: int, budget: Budget) -> list[Fde]:
        assert self._index is not None
        before = self._last(start - 1) if start > self.text.start else None
        fdes = [before] if before else []
        size = len(self._index.starts)
        inside = self._index.between(start, end)
        fdes += self._sort_entries(inside, budget)
        for at in range(inside.stop, min(size, inside.stop + _ZERO_LENGTH)):
            after = self._entry(at, budget)
            if after is not None:
                fdes.append(after)
                break
        return fdes

    def _judge(
        self, rows: Rows, start: int, end: int, most: int
    ) -> Generator[None, None, tuple[Rows, bool]]:
        """Judge the gaps, except in a file with stack depths, or on other machines than x86_64.

        A text that is too large for a real file, and so has no windows, is not judged: it could
        have any number of blocks.
        """
        if self._gaps is None or start >= end or not self.window_count:
            return rows, False
        return (yield from judge_gaps(rows, self.table, self._gaps, Gap(start, end), most))

    def _sort_entries(self, inside: range, budget: Budget) -> list[Fde]:
        """Entries by index, in the order that decides which wins: by start, then by offset."""
        assert self._index is not None
        fdes = []
        order = sorted(inside, key=self._order) if len(inside) < 1 << 14 else ()
        for at in order:
            fde = self._entry(at, budget)
            if fde is not None:
                fdes.append(fde)
            if self.exhausted:
                break
        return fdes

    def _order(self, at: int) -> tuple[int, int]:
        assert self._index is not None
        return self._index.starts[at], self._index.offset(at)

    def _interpret(self, fdes: list[Fde], budget: Budget) -> Rows:
        entries = Entries()
        if self.table.is_full:
            self.table.forget()
        for fde in fdes:
            try:
                program = self.table.program(fde, budget)
            except OverBudgetError:
                self.exhausted = True
                program = self.table.unreadable()
            entries.add(fde.start, fde.end, program)
        return entries.lay_out(self.table)

    # The whole file

    def build(self) -> Iterator[None]:
        """Make all rows, in slices. `rows` is there when this ends."""
        yield from self.prepare()
        if self._rows is not None:
            return
        entries = Entries()
        with self.table.keep_programs():  # windows may be made in between
            if self._frames is not None:
                try:
                    yield from self._add_all(entries, self._frames)
                except (OverBudgetError, FormatError):
                    self.exhausted = True
            for fde in self._start_code:
                entries.add(fde.start, fde.end, self.table.program(fde, self._budget))
            rows = yield from entries.laying_out(self.table)
            judged = yield from self._judge(rows, *self.text, _READ_AT_ONCE)
            self._rows, self.has_unread = judged
        self.table.forget()

    def reading(self) -> Generator[None, None, set[int]]:
        """Read the code that `build` did not, in slices; return the windows that change.

        Only as long as the rows are there: `rest` drops them.
        """
        self.has_unread = False
        if self._rows is None or self._gaps is None:
            return set()
        read = yield from read_gaps(self._rows, self.table, self._gaps, _READ_LATER)
        self._rows, parts = read
        return {
            number
            for part in parts
            for number in range(part.start >> WINDOW_BITS, (part.end - 1 >> WINDOW_BITS) + 1)
        }

    def _add_all(self, entries: Entries, frames: Frames) -> Iterator[None]:
        """Add every entry of the section; the loop of `build`, a million times a second."""
        budget, table = self._budget, self.table
        low, high = self.text
        due = _SLICE_STEPS
        programs: dict[bytes, int] = {}
        of: Cie | None = None
        for _, start, end, cie, code, where in frames.section.scan(budget):
            if not (start < end <= _WORD and low <= start < high):
                continue
            if cie is not of:
                of, programs = cie, table.known(cie)
            program = programs.get(code)
            if program is None:
                program = table.add_program(Fde(start, end, cie, code, where), programs, budget)
                due -= len(code)
            entries.add(start, end, program)
            due -= 2
            if due < 0:
                due = _SLICE_STEPS
                yield

    @property
    def rows(self) -> Rows:
        """All rows of the file; made if they are not there yet."""
        for _ in self.build():
            pass
        assert self._rows is not None
        return self._rows

    def whole(self) -> WholeWindows:
        """All windows of the file."""
        return finish(self.cut_whole())

    def cut_whole(self) -> Generator[None, None, WholeWindows]:
        """The same, in slices."""
        yield from self.build()
        rows = self.rows
        count = self.window_count
        used = (rows.starts[-1] >> WINDOW_BITS) - self.first_window + 1 if rows.starts else 0
        cut = yield from cutting_all(rows, self.first_window, min(count, used))
        return WholeWindows(self.first_window, *cut)
