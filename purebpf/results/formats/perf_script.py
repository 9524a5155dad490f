"""Reading the output of `perf script`: a header line for each sample, then its frames, leaf first.

    app  4711/4712 [001] 15583.829040:    2004008 cpu-clock:u:
                1262 leaf+0x12 (/srv/app)
               27249 __libc_start_call_main+0x79 (/usr/lib/libc.so.6)

Which fields there are depends on its option -F. Without call chains a sample is one line.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator

from purebpf.errors import FormatError
from purebpf.results.formats.perf_script_lines import (
    Header,
    add_source_line,
    is_source_code,
    read_bare_header,
    read_frame,
    read_header,
    read_leaf,
    read_lost,
    read_record,
)
from purebpf.results.model.loss import Loss, count_cause
from purebpf.results.model.profile import Labels, Profile, Stack
from purebpf.results.model.spelling import count_text
from purebpf.symbols.frame import Frame, Unknown

__all__ = ["looks_like", "parse"]

_HEAD = 1 << 20
"""How many characters of a text are looked at to tell what it is: `--header` writes hundreds of
lines of comments."""

_HEADER_EDGE = "# ========"


def looks_like(text: str) -> bool:
    """Return True for a text of perf script, and not of folded stacks."""
    head = io.StringIO(text[:_HEAD], newline="\n")
    lines = (line for _, line in _after_header(head) if line.strip() and not line.startswith("#"))
    first, following = next(lines, ""), next(lines, "")
    if not first:
        return False
    if read_record(first) is not None and ";" not in first:
        return True
    has_frames = following[:1].isspace() and read_frame(following) is not None
    if first[0] == "\t":
        return read_frame(first) is not None
    header = read_header(first)
    if header is not None:
        if header.event or has_frames or read_leaf(header.leaf):
            return True
        return ";" not in first and read_header(following) is not None  # nothing but periods
    bare = read_bare_header(first)
    if bare is None:
        return False
    return bool(bare.leaf) or (following[:1] == "\t" and has_frames)


def parse(lines: Iterable[str], source: str = "perf script") -> Profile:
    """The samples of the first event in the text; each counts 1.

    `about["other_events"]` names the others. Records other than samples are skipped, and records
    about lost samples are counted as losses.

    Raises:
        FormatError: a line is not a header and not a frame; `source` is the name of the text.
    """
    profile = Profile(f"perf script of {source}")
    reader = _Reader(profile, source)
    for number, line in _after_header(lines):
        reader.line(line, number)
    reader.end()
    if reader.event:
        profile.about["event"] = reader.event
    if reader.others:
        others = [
            f"{name}: {count_text(count, 'samples')}" for name, count in reader.others.items()
        ]
        profile.about["other_events"] = others
    if reader.lost:
        what = "samples were lost while the file was recorded: the ring buffers were full"
        cause = count_cause("ring_lost", reader.lost, what)
        profile.loss = Loss(None, profile.total, 0, (cause,))
    return profile


def _after_header(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield numbers and lines behind the header of `--header`, where a command may have several
    lines.
    """
    is_header = False
    for number, line in enumerate(lines, 1):
        text = line.rstrip("\r\n")
        if text == _HEADER_EDGE:
            is_header = not is_header
        elif not is_header:
            yield number, text
        elif not text.startswith("#") and read_header(text) is not None:  # it is cut off
            is_header = False
            yield number, text


class _Reader:
    """The sample that is being read.

    Attributes:
        event: the first one, "" if the text has none.
        others: samples of other events.
        lost: samples that records of the text count as lost.
    """

    def __init__(self, profile: Profile, source: str) -> None:
        self.event: str | None = None
        self.others: dict[str, int] = {}
        self.lost = 0
        self._profile = profile
        self._source = source
        self._labels: Labels | None = None
        self._is_open = False  # a header was read, also of another event
        self._has_header = False
        self._is_in_header = False  # the only frame, behind the event
        self._has_record = False  # and the lines behind it are the record's
        self._bare: tuple[str, int] | None = None  # a header that must have frames
        self._stack: list[Frame | Unknown] = []
        self._known: dict[str, Frame | Unknown] = {}
        self._stacks: dict[Stack, Stack] = {}

    def line(self, line: str, number: int) -> None:
        """Take in a line. Raises FormatError for one that perf script does not print."""
        if not line.strip():
            self.end()
        elif line.startswith("#"):
            return
        elif line[0] != "\t" and (type_ := read_record(line)) is not None:
            self.end()
            self._has_record = True
            self.lost += read_lost(line) if type_ == "PERF_RECORD_LOST" else 0
        elif line[0] != "\t" and (header := read_header(line)) is not None:
            self._begin(header, number)
        elif not is_source_code(line):
            self._undated(line, number)

    def _undated(self, line: str, number: int) -> None:
        """Take in a line that is no header for sure."""
        bare = None if line[0] == "\t" else read_bare_header(line)
        if bare is not None and bare.leaf and (bare.comm or bare.tid >= 0):
            self._begin(bare, number)
        elif not (self._continue(line) or (self._has_record and line[0].isspace())):
            if bare is None or (line[0].isspace() and not bare.leaf):
                problem = f"{line[:40]!r} is neither a sample nor a frame"
                raise FormatError(self._source, f"line {number}", problem)
            self._begin(bare, number)
            self._bare = None if bare.leaf else (line, number)

    def _begin(self, header: Header, number: int) -> None:
        self.end()
        self._is_open = self._has_header = True
        self._has_record = False
        if max(header.pid, header.tid, header.cpu) >= 1 << 31:
            numbers = f"{header.pid}, {header.tid}, {header.cpu}"
            raise FormatError(self._source, f"line {number}", f"a number of {numbers}")
        self.event = header.event if self.event is None else self.event
        if header.event != self.event:
            self.others[header.event] = self.others.get(header.event, 0) + 1
            return
        has_both = header.pid >= 0 and header.tid >= 0
        pid = header.pid if header.pid >= 0 else max(header.tid, 0)
        self._labels = Labels(header.comm, pid, header.tid if has_both else 0, header.cpu)
        leaf = read_leaf(header.leaf) if header.leaf.strip() else None
        if leaf is not None:
            self._stack.append(leaf)
        self._is_in_header = leaf is not None

    def _continue(self, line: str) -> bool:
        """Take in a frame, or the source line of the last one; False for any other line."""
        text = line.strip()
        entry = self._known.get(text) or read_frame(text) if line[0].isspace() else None
        if entry is not None:
            is_alone = not self._has_header and line[0] != "\t"
            if is_alone or not self._is_open:  # perf script -F ip,sym: samples have no header
                self._begin(Header("", -1, -1, -1, "", ""), 0)
                self._has_header = False
            self._bare = None
            self._known[text] = entry
            if self._is_in_header:  # -F addr: it is the address of data, as the stack is below it
                self._is_in_header = False
                self._stack.clear()
            if self._labels is not None:
                self._stack.append(entry)
            return True
        if not self._is_open or line[0] == "\t":
            return False
        if self._labels is None or not self._stack:
            return self._labels is None and line[0].isspace()
        placed = add_source_line(line, self._stack[-1])
        if placed is not None:
            self._stack[-1] = placed
        return placed is not None

    def end(self) -> None:
        """Count the sample. Raises FormatError for a header that is none."""
        if self._bare is not None:
            line, number = self._bare
            raise FormatError(self._source, f"line {number}", f"{line[:40]!r} is not a sample")
        if self._labels is not None:
            user = tuple(entry for entry in self._stack if entry.kind != "kernel")
            kernel = tuple(entry for entry in self._stack if entry.kind == "kernel")
            self._profile.add(self._same(user), self._same(kernel), 1, self._labels)
        self._labels = None
        self._is_open = False
        self._stack.clear()

    def _same(self, stack: Stack) -> Stack:
        """One object for equal stacks."""
        return self._stacks.setdefault(stack, stack)
