"""Code of files in anonymous memory: candidates in a /proc/PID/maps text. Pure.

For huge pages, programs copy their own code to anonymous memory at the same addresses: node with
--use-largepages, ClickHouse, files that BOLT made with --hugify. The anonymous mapping lies among
the other mappings of its file, which say where the file was loaded. Only the bytes prove it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from purebpf.symbols.elf_image import PF_X, PT_LOAD, Segment
from purebpf.symbols.frame import Address, FileOffset
from purebpf.symbols.proc_maps import Mapping, mapped_file, may_have_anonymous_code, parse_maps
from purebpf.tuples import NamedTuple

__all__ = [
    "MOST_CANDIDATES",
    "PLACE_BYTES",
    "Candidate",
    "candidates",
    "checked_places",
    "replace_lines",
    "text_of",
]

_LINE = re.compile(
    r"^([0-9a-f]+)-([0-9a-f]+) .... ([0-9a-f]+) ([0-9a-f]+):([0-9a-f]+) (\d+) *(.*)$", re.MULTILINE
)
_NEAR = 4 << 20
"""Bytes between two segments of a file, at most: they are aligned to huge pages."""
MOST_CANDIDATES = 64
"""Later ones stay anonymous. A browser with generated code has about ten."""
_MOST_BETWEEN = 16
"""Mappings without a file between an anonymous one and one of its file."""
_MOST_SEGMENTS = 16
"""PT_LOAD headers: linkers make two to six. Their number counts twice."""
_PAGE = 4096
_PLACES = 16
PLACE_BYTES = 64


class Candidate(NamedTuple):
    """Anonymous code, and the nearest mappings of files on both sides, with any access."""

    anonymous: Mapping
    neighbours: tuple[Mapping, ...]


def candidates(text: str) -> list[Candidate]:
    """Return the anonymous code of a /proc/PID/maps text that may be a copy of a file's code."""
    if not may_have_anonymous_code(text):
        return []
    code = {each.start for each in parse_maps(text) if each.file.is_anonymous}
    rows = [
        Mapping(
            Address(int(start, 16)),
            Address(int(end, 16)),
            FileOffset(int(offset, 16)),
            mapped_file(path, int(major, 16), int(minor, 16), int(inode)),
        )
        for start, end, offset, major, minor, inode, path in _LINE.findall(text)
    ]
    found = []
    for at, row in enumerate(rows):
        if row.start in code:
            before = rows[max(0, at - _MOST_BETWEEN) : at][::-1]
            after = rows[at + 1 : at + 1 + _MOST_BETWEEN]
            neighbours = (*_nearest(row, before), *_nearest(row, after))
            if neighbours:
                found.append(Candidate(row, neighbours))
            if len(found) == MOST_CANDIDATES:
                break
    return found


def _nearest(code: Mapping, others: Iterable[Mapping]) -> Iterator[Mapping]:
    """Yield the first mapping of a file, unless it is too far away."""
    reach = code
    for other in others:
        gap = max(other.start - reach.end, reach.start - other.end)
        if gap > _NEAR:
            return
        if not (other.file.is_anonymous or other.file.is_special):
            yield other
            return
        reach = other


def text_of(candidate: Candidate, neighbour: Mapping, segments: Sequence[Segment]) -> list[Mapping]:
    """Return the parts of anonymous code that lie where a file's code was loaded.

    Args:
        candidate: the code.
        neighbour: one of its neighbours.
        segments: the program headers of the neighbour's file.

    Returns:
        Mappings of that file. A page of a file may belong to two segments, so there may be several
        answers, one of which is right.
    """
    start, end = candidate.anonymous.start, candidate.anonymous.end
    loaded = [segment for segment in segments if segment.type == PT_LOAD]
    if len(loaded) > _MOST_SEGMENTS:
        return []
    biases = {
        neighbour.start - (segment.address + neighbour.offset - segment.offset)
        for segment in loaded
        if segment.offset & -_PAGE <= neighbour.offset < segment.offset + segment.file_size
    }
    parts = []
    for bias in sorted(biases):
        for segment in loaded:
            first = bias + segment.address
            begin = max(start, first & -_PAGE)
            until = min(end, first + segment.file_size + _PAGE - 1 & -_PAGE)
            if segment.flags & PF_X and begin < until:
                offset = FileOffset(segment.offset + begin - first)
                parts.append(Mapping(Address(begin), Address(until), offset, neighbour.file))
    return parts


def checked_places(part: Mapping, segments: Sequence[Segment]) -> list[tuple[Address, FileOffset]]:
    """Return the places to compare: 64 bytes from each address, and from each offset in the file.

    Bytes of the pages beyond the segment are another segment's, and may differ.
    """
    length = part.end - part.start
    spans = [
        (max(part.offset, segment.offset), min(part.offset + length, segment.offset + size))
        for segment in segments
        if segment.type == PT_LOAD and segment.flags & PF_X and (size := segment.file_size)
    ]
    first, until = max(spans, key=lambda span: span[1] - span[0], default=(0, 0))
    last = until - PLACE_BYTES
    if part.offset < 0 or last < first:
        return []
    step = max(1, (last - first) // (_PLACES - 1))
    offsets = [*range(first, last, step), last]
    return [(Address(part.start + at - part.offset), FileOffset(at)) for at in offsets]


def replace_lines(text: str, parts: Iterable[tuple[Mapping, Mapping]]) -> str:
    """Return a /proc/PID/maps text in which copies of code are lines of their files.

    Args:
        text: all of the file.
        parts: anonymous mappings, each with its part that is a copy.
    """
    by_start: dict[int, list[Mapping]] = {}
    for anonymous, part in parts:
        by_start.setdefault(anonymous.start, []).append(part)

    def replace(line: re.Match[str]) -> str:
        start, end = int(line[1], 16), int(line[2], 16)
        whole = line[0]
        if start not in by_start:
            return whole
        lines, rest = [], whole[whole.index(" ") :]
        for part in sorted(by_start[start]):
            if start < part.start:
                lines.append(f"{start:x}-{part.start:x}{rest}")
            lines.append(_line(part))
            start = part.end
        if start < end:
            lines.append(f"{start:x}-{end:x}{rest}")
        return "\n".join(lines)

    return _LINE.sub(replace, text) if by_start else text


def _line(part: Mapping) -> str:
    file = part.file
    path = file.path.replace("\n", "\\012") + " (deleted)" * file.deleted
    where = f"{part.offset:08x} {file.major:02x}:{file.minor:02x} {file.inode}"
    return f"{part.start:x}-{part.end:x} r-xp {where} {path}"
