"""/proc/PID/maps, the mappings of a process (proc_pid_maps(5)).

Only executable mappings stay: code runs nowhere else, and they are a fifth of the lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from purebpf.late_pattern import compile_later
from purebpf.symbols.frame import Address, FileOffset
from purebpf.tuples import NamedTuple

__all__ = ["MappedFile", "Mapping", "mapped_file", "may_have_anonymous_code", "parse_maps"]

_EXECUTABLE = compile_later(
    r"^([0-9a-f]+)-([0-9a-f]+) ..x. ([0-9a-f]+) ([0-9a-f]+):([0-9a-f]+) (\d+) *(.*)$",
    re.MULTILINE,
)
_ANONYMOUS_CODE = compile_later(
    r"^\S+ ..x. \S+ 00:(?:00 0 *(?:$|\[anon|\[heap|\[stack)"
    r"|\S+ \d+ +/(?:dev/zero|anon_hugepage|memfd:|SYSV))",
    re.MULTILINE,
)
_DELETED = " (deleted)"
_NO_NAME = "//anon"  # what perf records say where /proc says nothing
_MEMORY_FILE = "/memfd:"
_ANONYMOUS = ("/dev/zero", "/anon_hugepage", _MEMORY_FILE, "/SYSV", "[anon")
"""Names of memory where runtimes put generated code. A memory file may be an ELF file, too."""


class MappedFile(NamedTuple):
    """The content of a mapping: a file, or "" for anonymous memory, or "[vdso]" and its like.

    `path` is as the process sees it, in its own mount namespace. `inode` is 0 when it is not
    known; `build_id` (hex) is "" unless the kernel reported that instead.
    """

    path: str
    major: int = 0
    minor: int = 0
    inode: int = 0
    build_id: str = ""
    deleted: bool = False

    @property
    def is_anonymous(self) -> bool:
        """Memory that is not a file: where generated code lives."""
        path = self.path
        return not path or path in ("[heap]", "[stack]") or path.startswith(_ANONYMOUS)

    @property
    def is_memory_file(self) -> bool:
        """A file of memfd_create(2): a program or library, or memory for generated code."""
        return self.path.startswith(_MEMORY_FILE)

    @property
    def is_special(self) -> bool:
        """A mapping that the kernel provides: "[vdso]", "[vsyscall]", "[uprobes]"."""
        return self.path.startswith("[") and not self.is_anonymous


class Mapping(NamedTuple):
    """An executable mapping: addresses `start` up to `end` show `file` from byte `offset` on."""

    start: Address
    end: Address
    offset: FileOffset
    file: MappedFile

    def file_offset(self, address: Address) -> FileOffset:
        """The byte of the file that is mapped at an address."""
        return FileOffset(address - self.start + self.offset)


def parse_maps(text: str) -> Iterator[Mapping]:
    """The executable mappings of a /proc/PID/maps text, in its order; other lines are skipped."""
    for start, end, offset, major, minor, inode, path in _EXECUTABLE.findall(text):
        yield Mapping(
            Address(int(start, 16)),
            Address(int(end, 16)),
            FileOffset(int(offset, 16)),
            mapped_file(path, int(major, 16), int(minor, 16), int(inode)),
        )


def may_have_anonymous_code(text: str) -> bool:
    """Return False if a /proc/PID/maps text has no executable memory without a file.

    Most have none, and then the other lines need not be parsed.
    """
    return _ANONYMOUS_CODE.search(text) is not None


def mapped_file(
    path: str, major: int = 0, minor: int = 0, inode: int = 0, build_id: str = ""
) -> MappedFile:
    """A file as the kernel words it: " (deleted)" may follow the path, a newline is octal."""
    deleted = path.endswith(_DELETED)
    path = "" if path == _NO_NAME else path.removesuffix(_DELETED).replace("\\012", "\n")
    return MappedFile(path, major, minor, inode, build_id, deleted)
