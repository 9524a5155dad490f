"""Reading a profile that was saved, by us or by other tools; any of them may be gzipped.

The content decides the format: our JSON, speedscope's, perf.data, pprof, a window of the agent
(OTLP), the output of perf script, or folded stacks.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import re
import sys
import time
import zlib
from collections.abc import Iterator
from os import PathLike, fspath
from typing import TextIO

from purebpf.errors import FormatError, KernelError
from purebpf.files.input_file import NO_WRITER, open_input
from purebpf.loader.host.debug_files import Fetch
from purebpf.results import Profile, count_cause
from purebpf.results.formats import (
    folded,
    foreign,
    json,
    legacy_pprof,
    otlp_profile,
    perf_script,
    pprof_reader,
    speedscope_reader,
)
from purebpf.tuples import NamedTuple
from purebpf.wire.perf_data import MAGIC

__all__ = ["Bounds", "read", "read_profile"]

_GZIP = b"\x1f\x8b"
_FORMATS = (
    "JSON, speedscope, pprof, perf.data, windows of the agent, the text of perf script or folded "
    "stacks"
)
_PIECE = 1 << 20
_LIMIT = 1 << 30
"""Bytes that a profile may have."""
_UNPACKED_LIMIT = 1 << 28
"""Bytes of text that a gzipped one may unpack to: a small file can become anything."""
_MOST_PARTS = 1 << 24
"""Lists, objects and lines in it: each takes 60 bytes of memory and more, and 2 in the file."""
_MOST_FRAMES = 1 << 27
"""Frames of folded stacks: each takes 8 bytes of memory and more, and 2 in the file."""
_BINARY = re.compile(rb"[\0-\x08\x0e-\x1a\x1c-\x1f\x7f]")
"""Bytes that no text has."""
_CHECKED = 256
"""Lines between two looks at the clock."""


class Bounds(NamedTuple):
    """The limits of reading one file.

    For folded stacks and the text of perf script, lines beyond `size` bytes, `lines`, `frames` or
    `seconds` of CPU time are dropped, and counted as the cause of loss `lines_left_out`. Other
    formats cannot be read in part. JSON of more than `size` bytes, or `lists` or as many objects,
    is refused; the same goes for pprof or OTLP, where eight bytes are a sample, of an eighth of
    `size`; and for perf.data that takes longer.
    """

    size: int
    lines: int
    frames: int
    lists: int
    seconds: float


def read_profile(path: str | PathLike[str], *, timed: bool = False) -> Profile:
    """Read a saved profile, of purebpf or of another tool: every format that `convert` reads.

    Those are JSON, perf.data, pprof, speedscope, OTLP profiles, the text of perf script and folded
    stacks, each perhaps gzipped. The content tells which it is. Code in perf.data is named by the
    files and the kernel of this machine, as far as they provably are the recorded ones.

    Args:
        path: the file; "-": standard input.
        timed: keep the time of each sample, where perf.data has it.

    Raises:
        KernelError: the file cannot be opened or read.
        FormatError: the file is none of these, or cut short.
        NotSupportedError: perf.data has records that purebpf does not read.
    """
    return read(fspath(path), timed=timed)


def read(
    path: str, *, timed: bool = False, fetch: Fetch | None = None, bounds: Bounds | None = None
) -> Profile:
    """The profile in a file, "-": in standard input; `timed`: with when, where perf.data says it.

    `fetch` gets debug files that are not here, to name addresses in perf.data. `bounds` are for
    files that other users wrote, where the reader has to stay responsive.

    Raises:
        KernelError: the file cannot be opened or read.
        FormatError: it is none of these formats, or cut short.
        NotSupportedError: as `purebpf.observe.saved.perf_data_loader.read`.
    """
    is_stdin = path == "-"
    name = "standard input" if is_stdin else path
    if not is_stdin and os.path.isdir(path):
        return _read_perf_data(path, timed, fetch, bounds)
    try:
        with _standard_input() if is_stdin else open(path, "rb", opener=open_input) as file:
            if not is_stdin and file.seekable() and file.peek(len(MAGIC)).startswith(MAGIC):
                return _read_perf_data(path, timed, fetch, bounds)
            if not is_stdin and os.fstat(file.fileno()).st_size > _LIMIT:
                raise _too_large(name, _LIMIT)  # not read first: it may be a hole
            data = _content(file)
    except KernelError:  # an OSError that says what it is
        raise
    except OSError as error:
        why = NO_WRITER if error.errno == errno.EPIPE else ""
        raise KernelError("open(2)", error.errno or errno.EIO, f"profile {name}", why=why) from None
    is_packed = data.startswith(_GZIP)
    if is_packed:
        data = _unpack(data, name)
    if data.startswith(MAGIC):
        from purebpf.observe.saved import perf_data_loader

        options = perf_data_loader.LoadOptions(
            timed=timed, fetch=fetch, seconds=bounds and bounds.seconds
        )
        return perf_data_loader.of_bytes(data, name, options).profile
    _check_size(data, name, is_packed=is_packed)
    if problem := legacy_pprof.why_not(data) or foreign.why_binary(data):
        raise FormatError(name, "byte 0", problem)
    is_pprof = pprof_reader.looks_like(data)
    is_binary = is_pprof or otlp_profile.looks_like(data)
    if bounds and (is_binary or data.lstrip()[:1] == b"{"):
        _check_whole(data, name, bounds, is_binary=is_binary)
    if is_pprof:
        return pprof_reader.parse(data, name)
    if is_binary:
        return otlp_profile.parse(data, name)
    return _of_text(data, name, bounds)


def _of_text(data: bytes, name: str, bounds: Bounds | None) -> Profile:
    data = _without_mark(data, name)
    cut = _last_line(data, name, bounds.size) if bounds else len(data)
    text = _decode(data[:cut] if cut < len(data) else data, name)
    if not text.strip():
        raise FormatError(name, "byte 0", "the file is empty")
    is_json = text.lstrip()[:1] == "{"
    if is_json and speedscope_reader.looks_like(text):
        return speedscope_reader.parse(text, name)
    lines = _Lines(_split_lines(text), bounds)
    try:
        if is_json:
            return json.parse(text, name)
        parse = perf_script.parse if perf_script.looks_like(text) else folded.parse
        profile = parse(lines, name)
    except FormatError:
        if problem := foreign.why_not(text):
            raise FormatError(name, "byte 0", problem) from None
        raise
    left_out = lines.left_out + _count_lines(data, cut)
    if left_out:
        description = (
            "lines of the file were left out: it is too large (`purebpf convert` reads all of it)"
        )
        cause = count_cause("lines_left_out", left_out, description)
        profile.loss = profile.loss._replace(causes=(*profile.loss.causes, cause))
    return profile


def _split_lines(text: str) -> list[str]:
    """Lines end with a newline; in files of old Macs, which have none, with a carriage return."""
    return text.split("\n" if "\n" in text else "\r")


def _decode(data: bytes, name: str) -> str:
    """Raise FormatError for data that is not text, or has more parts than any profile."""
    _check_parts(data, name)
    if (zero := data.find(b"\0")) >= 0:
        raise FormatError(name, f"byte {zero}", f"not text: saved profiles are {_FORMATS}")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        # the kernel and perf take any bytes for the name of a thread or a file
        if data.lstrip()[:1] != b"{" and not _BINARY.search(data):
            return data.decode(errors="surrogateescape")
        problem = f"not text: saved profiles are {_FORMATS}"
        raise FormatError(name, f"byte {error.start}", problem) from None


def _without_mark(data: bytes, name: str) -> bytes:
    """A text in UTF-8, without a byte order mark: PowerShell redirects into UTF-16 with one."""
    if data.startswith(codecs.BOM_UTF8):
        return data[len(codecs.BOM_UTF8) :]
    if not data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data
    if len(data) > _UNPACKED_LIMIT:
        raise _too_large(name, _UNPACKED_LIMIT)
    try:
        return data.decode("utf-16").encode()
    except UnicodeError:
        raise FormatError(name, "byte 2", f"not text: saved profiles are {_FORMATS}") from None


def _last_line(data: bytes, name: str, size: int) -> int:
    """Return the end of the last line that ends in the first so many bytes."""
    if len(data) <= size:
        return len(data)
    end = data.rfind(b"\n", 0, size) + 1
    if not end:
        raise FormatError(name, "line 1", f"more than {_size_text(size)}")
    return end


def _count_lines(data: bytes, start: int) -> int:
    """Lines from an offset on, where one begins."""
    is_cut = start < len(data) and not data.endswith(b"\n")
    return data.count(b"\n", start) + is_cut


class _Lines:
    """The lines of a text until the bounds are reached. `left_out` counts the others."""

    def __init__(self, lines: list[str], bounds: Bounds | None) -> None:
        self._lines, self._bounds = lines, bounds
        self.left_out = 0

    def __iter__(self) -> Iterator[str]:
        bounds = self._bounds
        if bounds is None:
            yield from self._lines
            return
        until = time.thread_time() + bounds.seconds
        frames = 0
        for number, line in enumerate(self._lines):
            frames += line.count(";")
            is_late = number % _CHECKED == _CHECKED - 1 and time.thread_time() > until
            if is_late or number >= bounds.lines or frames > bounds.frames:
                self.left_out = len(self._lines) - number - (not self._lines[-1])
                return
            yield line


def _check_size(data: bytes, name: str, *, is_packed: bool) -> None:
    """Raise FormatError for more than any profile has."""
    limit = min(_UNPACKED_LIMIT, _LIMIT) if is_packed else _LIMIT
    if len(data) > limit:
        advice = ". Unpack it with gunzip if it is yours" if is_packed else ""
        raise _too_large(name, limit, advice)


def _too_large(name: str, limit: int, advice: str = "") -> FormatError:
    return FormatError(name, "size", f"more than {_size_text(limit)}{advice}")


def _size_text(size: int) -> str:
    return f"{size >> 20} MB" if size >= 1 << 20 else f"{size / 1e3:.0f} kB"


def _check_whole(data: bytes, name: str, bounds: Bounds, *, is_binary: bool) -> None:
    """Raise FormatError for a format that cannot be read in part, and takes too long as a whole."""
    size = bounds.size // 8 if is_binary else bounds.size
    if len(data) > size:
        raise _too_large(name, size)
    if not is_binary and max(data.count(b"["), data.count(b"{")) > bounds.lists:
        raise FormatError(name, "size", f"more than {bounds.lists} lists or objects")


def _check_parts(data: bytes, name: str) -> None:
    """Raise FormatError for a text of so many parts that it would take gigabytes of memory."""
    if max(data.count(b"["), data.count(b"{"), data.count(b"\n")) > _MOST_PARTS:
        raise FormatError(name, "size", f"more than {_MOST_PARTS} lists, objects or lines")
    if data.count(b";") > _MOST_FRAMES:
        raise FormatError(name, "size", f"more than {_MOST_FRAMES} frames")


def _read_perf_data(path: str, timed: bool, fetch: Fetch | None, bounds: Bounds | None) -> Profile:
    from purebpf.observe.saved import perf_data_loader

    seconds = bounds and bounds.seconds
    options = perf_data_loader.LoadOptions(timed=timed, fetch=fetch, seconds=seconds)
    return perf_data_loader.read(path, options).profile


def _standard_input() -> io.BufferedReader:
    """Standard input, which stays open."""
    stream: TextIO | None = sys.stdin  # None where the descriptor is closed
    if stream is None:
        raise OSError(errno.EBADF, "")
    return open(stream.fileno(), "rb", closefd=False)


def _content(file: io.BufferedIOBase, *, is_packed: bool = False) -> bytes:
    """Return all of it, or more than the limit. Not in one call, which allocates the possible
    maximum.
    """
    content = bytearray()
    limit = _LIMIT
    while len(content) <= limit and (more := file.read(_PIECE)):
        content += more
        if is_packed and not content.startswith(MAGIC):
            limit = min(_UNPACKED_LIMIT, _LIMIT)
    return bytes(content)


def _unpack(data: bytes, path: str) -> bytes:
    """Its members, one behind the other; zeros may follow (gzip(1), "Advanced usage")."""
    import gzip

    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            return _content(file, is_packed=True)
    except EOFError:
        raise FormatError(path, "gzip", "the file is truncated") from None
    except (gzip.BadGzipFile, zlib.error):
        raise FormatError(path, "gzip", "the compressed data is damaged") from None
