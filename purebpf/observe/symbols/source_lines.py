"""Source lines of code, from llvm-symbolizer or addr2line, which read the DWARF.

Each file has one process, which gets all addresses at once, with few rights (`confined`). Its time
is limited: answers until then count.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress

from purebpf.errors import FormatError, KernelError
from purebpf.files.regular_file import opened_regular
from purebpf.files.trusted_path import find_program
from purebpf.loader.host.debug_files import Fetch, debug_file, image_of
from purebpf.observe.symbols.confined import Limits, run_on_file
from purebpf.symbols.budget import OverBudgetError
from purebpf.symbols.elf_image import ElfImage, virtual_offset
from purebpf.symbols.frame import FileOffset
from purebpf.symbols.proc_maps import parse_maps
from purebpf.symbols.source_lines import SourceLine, parse_lines
from purebpf.syscall import proc
from purebpf.tuples import NamedTuple

__all__ = ["LineTool", "SourceLines", "find_tool"]

_LLVM = ("llvm-symbolizer-19", "llvm-symbolizer")
_GNU = "addr2line"
_NOWHERE = (1 << 64) - 1
_FILE_S = 20.0
"""Seconds for one file, so that each leaves time for the others."""
_LINES = (".debug_line", ".zdebug_line")

Lines = Mapping[FileOffset, tuple[SourceLine, ...]]


class LineTool(NamedTuple):
    """A program that knows lines: its path, and the options before the file's."""

    path: str
    options: tuple[str, ...]


def find_tool() -> LineTool | None:
    """llvm-symbolizer, which is faster on large files, or else addr2line; None: neither is here."""
    for name in _LLVM:
        if path := find_program(name):
            return LineTool(path, ("--output-style=GNU", "--no-demangle", "-a", "-f", "-i", "-e"))
    path = find_program(_GNU)
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
        gone: paths that lead to no file any more, or to another one.
        unfinished: paths of files that there was no time for, or only for a part of.
        problem: why the tool could not be run, or "".
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
        self.problem = ""

    def of(
        self, path: str, build_id: str, places: Iterable[FileOffset], pids: Sequence[int]
    ) -> Lines:
        """The lines of some bytes of a file.

        Args:
            path: as its process sees it.
            build_id: the build id that the file must have; "" for a file without one.
            places: offsets in the file.
            pids: processes that map it, to find it in their mount namespace.
        """
        if time.monotonic() >= self._end or self._is_stopped():
            self.unfinished.append(path)
            return {}
        try:
            return self._of(path, build_id, places, pids)
        except OverBudgetError:
            self.unfinished.append(path)
        except (OSError, subprocess.SubprocessError) as error:
            self.problem = f"{self._tool.path}: {error}"
        return {}

    def _of(
        self, path: str, build_id: str, places: Iterable[FileOffset], pids: Sequence[int]
    ) -> Lines:
        with ExitStack() as stack:
            opened = _image(stack, path, build_id, pids)
            if opened is None:
                self.gone.append(path)
                return {}
            fd, image = opened
            if not _has_lines(image):
                owner = os.fstat(fd).st_uid
                debug = debug_file(
                    image, path, pids, _has_lines, self._fetch, owner=owner, spend=self._check
                )
                if debug is None:
                    self.without.append(path)
                    return {}
                fd = debug.fd
                stack.callback(os.close, fd)
            by_address = {
                int(address): place
                for place in sorted(places)
                if (address := virtual_offset(image.segments, place)) is not None
            }
            lines = self._ask(fd, path, list(by_address))
        return {by_address[address]: answer for address, answer in lines.items()}

    def _ask(
        self, fd: int, path: str, addresses: Sequence[int]
    ) -> dict[int, tuple[SourceLine, ...]]:
        asked = [*addresses, _NOWHERE]  # what follows an answer says that it is complete
        questions = "".join(f"{address:#x}\n" for address in asked).encode()
        limits = Limits(min(_FILE_S, max(0.0, self._end - time.monotonic())))
        command = [self._tool.path, *self._tool.options]
        answer = run_on_file(command, fd, questions, limits, self._is_stopped)
        if not answer.is_whole:
            self.unfinished.append(path)
        lines = parse_lines(answer.output.decode("utf-8", "backslashreplace"), asked)
        lines.pop(_NOWHERE, None)
        return lines

    def _check(self, _nbytes: int) -> None:
        """Raise OverBudgetError when the time is over."""
        if time.monotonic() >= self._end or self._is_stopped():
            raise OverBudgetError("", "the time for lines is over")


def _image(
    stack: ExitStack, path: str, build_id: str, pids: Sequence[int]
) -> tuple[int, ElfImage] | None:
    """The file itself, found where a process sees it or here, and open until the stack ends."""
    for place in _places(path, pids):
        try:
            fd = stack.enter_context(opened_regular(place))
            image = image_of(fd, place)
        except (OSError, FormatError, ValueError):  # a path may have any character, NUL too
            continue
        if image.build_id == build_id:
            return fd, image
    return None


def _places(path: str, pids: Sequence[int]) -> Iterator[str]:
    """Yield the places of a file: its path, and, when it was deleted, its mapping.

    Our namespace comes first: in a user's mount namespace, the user may put a file of any build id
    in its place.
    """
    pids = [proc.with_memory(pid) for pid in pids]
    yield from (path, *(f"/proc/{pid}/root{path}" for pid in pids))
    for pid in pids:
        with suppress(KernelError):
            for mapping in parse_maps(proc.maps(pid) or ""):
                if mapping.file.deleted and mapping.file.path == path:
                    yield f"/proc/{pid}/map_files/{mapping.start:x}-{mapping.end:x}"
                    break


def _has_lines(image: ElfImage) -> bool:
    return any(image.section(name) is not None for name in _LINES)
