"""Where code is in its source, told by llvm-symbolizer or addr2line: DWARF is theirs to read.

One process for each file, which gets all addresses through a pipe. It is bounded in time: what is
answered until then counts.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import NamedTuple

from purebpf.errors import FormatError
from purebpf.kernel.host.regular_file import opened_regular
from purebpf.kernel.symbolize.debug_files import Fetch, debug_file, image_of
from purebpf.symbols.elf_image import ElfImage, virtual_offset
from purebpf.symbols.frame import FileOffset
from purebpf.symbols.source_lines import SourceLine, parse_lines

__all__ = ["LineTool", "SourceLines", "find_tool"]

_LLVM = ("llvm-symbolizer-19", "llvm-symbolizer")
_GNU = "addr2line"
_NOWHERE = (1 << 64) - 1
_MAX_MEMORY = 8 << 30
"""Bytes of address space: the tool maps the file, and reads what others wrote."""
_LINES = (".debug_line", ".zdebug_line")

Lines = Mapping[FileOffset, tuple[SourceLine, ...]]


class LineTool(NamedTuple):
    """A program that knows lines: its path, and the options before the file's."""

    path: str
    options: tuple[str, ...]


def find_tool() -> LineTool | None:
    """llvm-symbolizer, which is faster on large files, or else addr2line; None: neither is here."""
    for name in _LLVM:
        if path := shutil.which(name):
            return LineTool(path, ("--output-style=GNU", "--no-demangle", "-a", "-f", "-i", "-e"))
    path = shutil.which(_GNU)
    return LineTool(path, ("-a", "-f", "-i", "-e")) if path else None


class SourceLines:
    """Asks a tool about files, until the time is over.

    Args:
        tool: which one.
        timeout_s: for all files together.
        fetch: gets the debug file of a build id that is not on this machine.
        is_stopped: whether to end early.

    Attributes:
        without: paths of files that have no line information here.
        gone: paths at which there is no file any more, or another one.
        unfinished: paths of files that there was no time for, or only for a part of.
    """

    def __init__(
        self,
        tool: LineTool,
        timeout_s: float,
        fetch: Fetch | None = None,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._is_stopped = is_stopped
        self._tool = tool
        self._end = time.monotonic() + timeout_s
        self._fetch = fetch
        self.without: list[str] = []
        self.gone: list[str] = []
        self.unfinished: list[str] = []

    def of(
        self, path: str, build_id: str, places: Iterable[FileOffset], pids: Sequence[int]
    ) -> Lines:
        """The lines of some bytes of a file.

        Args:
            path: as its process sees it.
            build_id: what the file must have; "" for one that has none.
            places: offsets in the file.
            pids: processes that map it, to find it in their mount namespace.
        """
        if time.monotonic() >= self._end or self._is_stopped():
            self.unfinished.append(path)
            return {}
        with ExitStack() as stack:
            image = _image(stack, path, build_id, pids)
            if image is None:
                self.gone.append(path)
                return {}
            file = image.source
            if not _has_lines(image):
                debug = debug_file(image, path, pids, _has_lines, self._fetch)
                if debug is None:
                    self.without.append(path)
                    return {}
                os.close(debug.fd)
                file = debug.path
            by_address = {
                int(address): place
                for place in sorted(places)
                if (address := virtual_offset(image.segments, place)) is not None
            }
        found = self._asked(file, path, list(by_address))
        return {by_address[address]: lines for address, lines in found.items()}

    def _asked(
        self, file: str, path: str, addresses: Sequence[int]
    ) -> dict[int, tuple[SourceLine, ...]]:
        environment = {name: os.environ[name] for name in os.environ if name != "DEBUGINFOD_URLS"}
        process = subprocess.Popen(
            [self._tool.path, *self._tool.options, file],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        asked = [*addresses, _NOWHERE]  # what follows an answer says that it is complete
        questions = "".join(f"{address:#x}\n" for address in asked).encode()
        with process:
            with suppress(OSError):  # it may have ended
                resource.prlimit(process.pid, resource.RLIMIT_AS, (_MAX_MEMORY, _MAX_MEMORY))
            try:
                out, _ = process.communicate(questions, max(0.0, self._end - time.monotonic()))
            except subprocess.TimeoutExpired as late:
                process.kill()
                out = late.output or b""
                self.unfinished.append(path)
            except BaseException:
                process.kill()
                raise
        found = parse_lines(out.decode("utf-8", "backslashreplace"), asked)
        found.pop(_NOWHERE, None)
        return found


def _image(stack: ExitStack, path: str, build_id: str, pids: Sequence[int]) -> ElfImage | None:
    """The file itself, found where a process sees it or here, and open until the stack ends."""
    for place in _places(path, pids):
        try:
            image = image_of(stack.enter_context(opened_regular(place)), place)
        except (OSError, FormatError, ValueError):  # a path may have any character, NUL too
            continue
        if image.build_id == build_id:
            return image
    return None


def _places(path: str, pids: Sequence[int]) -> Iterator[str]:
    """Where the file may be: under its path, and, when it was deleted, where it is mapped."""
    yield from (*(f"/proc/{pid}/root{path}" for pid in pids), path)
    for pid in pids:
        mapped = f"/proc/{pid}/map_files"
        with suppress(OSError):
            for name in os.listdir(mapped):
                if os.readlink(f"{mapped}/{name}") == f"{path} (deleted)":
                    yield f"{mapped}/{name}"
                    break


def _has_lines(image: ElfImage) -> bool:
    return any(image.section(name) is not None for name in _LINES)
