"""Reading a profile that was saved, by us or by other tools; any of them may be gzipped.

Which it is, its content says: our JSON, speedscope's, perf.data, pprof, what perf script prints, or
folded stacks.
"""

from __future__ import annotations

import errno
import io
import os
import sys
import zlib
from typing import TextIO

from purebpf.errors import FormatError, KernelError
from purebpf.kernel.symbolize.debug_files import Fetch
from purebpf.results import Profile
from purebpf.results.formats import (
    folded,
    json,
    perf_script,
    pprof_reader,
    speedscope_reader,
)
from purebpf.wire.perf_data import MAGIC

__all__ = ["read"]

_GZIP = b"\x1f\x8b"
_FORMATS = "JSON, speedscope, pprof, perf.data, the text of perf script or folded stacks"
_PIECE = 1 << 20
_LIMIT = 1 << 30
"""Bytes that a profile may have."""
_UNPACKED_LIMIT = 1 << 28
"""Bytes of text that a gzipped one may unpack to: a small file can become anything."""
_MOST_PARTS = 1 << 24
"""Lists, objects and lines in it: each takes 60 bytes of memory and more, and 2 in the file."""


def read(path: str, *, timed: bool = False, fetch: Fetch | None = None) -> Profile:
    """The profile in a file, "-": in standard input; `timed`: with when, where perf.data says it.

    `fetch` gets debug files that are not here, to name what is in perf.data.

    Raises:
        KernelError: the file cannot be opened or read.
        FormatError: it is none of these formats, or cut short.
        NotSupportedError: as `purebpf.measure.perf_data_loader.read`.
    """
    is_stdin = path == "-"
    name = "standard input" if is_stdin else path
    try:
        with _standard_input() if is_stdin else open(path, "rb") as file:
            if not is_stdin and file.seekable() and file.peek(len(MAGIC)).startswith(MAGIC):
                from purebpf.measure import perf_data_loader

                return perf_data_loader.read(
                    path, perf_data_loader.LoadOptions(timed=timed, fetch=fetch)
                ).profile
            if not is_stdin and os.fstat(file.fileno()).st_size > _LIMIT:
                raise _too_large(name, _LIMIT)  # not read first: it may be a hole
            data = _content(file)
    except KernelError:  # an OSError that says what it is
        raise
    except OSError as error:
        raise KernelError("open(2)", error.errno or errno.EIO, f"profile {name}") from None
    is_packed = data.startswith(_GZIP)
    if is_packed:
        data = _unpack(data, name)
    if data.startswith(MAGIC):
        from purebpf.measure import perf_data_loader

        return perf_data_loader.of_bytes(
            data, name, perf_data_loader.LoadOptions(timed=timed, fetch=fetch)
        ).profile
    _check_size(data, name, is_packed=is_packed)
    if pprof_reader.looks_like(data):
        return pprof_reader.parse(data, name)
    _check_parts(data, name)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        problem = f"not text: saved profiles are {_FORMATS}"
        raise FormatError(name, f"byte {error.start}", problem) from None
    return _of_text(text, name)


def _of_text(text: str, name: str) -> Profile:
    if not text.strip():
        raise FormatError(name, "byte 0", "the file is empty")
    if text.lstrip()[:1] == "{":
        if speedscope_reader.looks_like(text):
            return speedscope_reader.parse(text, name)
        return json.parse(text, name)
    if perf_script.looks_like(text):
        return perf_script.parse(text.split("\n"), name)
    return folded.parse(text.split("\n"), name)


def _check_size(data: bytes, name: str, *, is_packed: bool) -> None:
    """Raise FormatError for more than any profile has."""
    limit = min(_UNPACKED_LIMIT, _LIMIT) if is_packed else _LIMIT
    if len(data) > limit:
        advice = ". Unpack it with gunzip if it is yours" if is_packed else ""
        raise _too_large(name, limit, advice)


def _too_large(name: str, limit: int, advice: str = "") -> FormatError:
    return FormatError(name, "size", f"more than {limit >> 20} MB{advice}")


def _check_parts(data: bytes, name: str) -> None:
    """Raise FormatError for a text of so many parts that it would take gigabytes of memory."""
    if max(data.count(b"["), data.count(b"{"), data.count(b"\n")) > _MOST_PARTS:
        raise FormatError(name, "size", f"more than {_MOST_PARTS} lists, objects or lines")


def _standard_input() -> io.BufferedReader:
    """Standard input, which stays open."""
    stream: TextIO | None = sys.stdin  # None where the descriptor is closed
    if stream is None:
        raise OSError(errno.EBADF, "")
    return open(stream.fileno(), "rb", closefd=False)


def _content(file: io.BufferedIOBase) -> bytes:
    """All of it, or more than the limit. Not in one call, which allocates what it may become."""
    content = bytearray()
    while len(content) <= _LIMIT and (more := file.read(_PIECE)):
        content += more
    return bytes(content)


def _unpack(data: bytes, path: str) -> bytes:
    """Its members, one behind the other; zeros may follow (gzip(1), "Advanced usage")."""
    import gzip

    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            return _content(file)
    except EOFError:
        raise FormatError(path, "gzip", "the file is truncated") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise FormatError(path, "gzip", f"the file is damaged: {error}") from None
