"""The files behind mappings: found, and checked to be the right ones.

A path in /proc/PID/maps belongs to the mount namespace of its process, and the file there now need
not be the one that was mapped. So each place that may show the file is tried in turn, and the file
there must be the recorded inode, or have the recorded build id:

1. /proc/PID/map_files/START-END: the mapped file itself, even when it was deleted. Needs
   CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN (proc_pid_map_files(5)).
2. A descriptor that was opened while the process lived, for its unwind rules: the path may lead
   nowhere once the process has ended, as a container's does.
3. /proc/PID/exe for a deleted program, where the link in map_files is missing or needs more rights.
4. /proc/PID/root/PATH, and the same for the processes that forked it: for containers.
5. PATH here, for a process that has exited.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from enum import Enum, auto
from errno import EMFILE, ENFILE
from typing import Protocol

from purebpf.errors import FormatError, KernelError
from purebpf.files.path_steps import open_place as hold_place
from purebpf.files.regular_file import opened_regular
from purebpf.loader.host.debug_files import image_of
from purebpf.symbols.proc_maps import MappedFile, Mapping, mapped_file
from purebpf.syscall import proc
from purebpf.tuples import NamedTuple

__all__ = [
    "Identity",
    "OpenFiles",
    "Trust",
    "is_for_all",
    "is_mapped_one",
    "mapped_status",
    "open_mapped",
    "open_place",
    "places",
    "was_written",
]


class Identity(NamedTuple):
    """A file that was not written to in between."""

    device: int
    inode: int
    mtime_ns: int
    size: int
    owner: int

    @classmethod
    def of(cls, status: os.stat_result) -> Identity:
        """Return the identity of an open file."""
        return cls(status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size, status.st_uid)


class OpenFiles(Protocol):
    """Mapped files that somebody else opened; `CodeFiles` has them, for unwinding."""

    def held(self, mapping: Mapping, pid: int) -> int | None:
        """Return a descriptor of a process's mapped file, which stays open; None: there is none."""

    def noted(self, mapping: Mapping, pid: int) -> Identity | None:
        """Return the identity of the file when the process was looked at; None: it was not."""


class Trust(Enum):
    """The degrees of trust that the file at a path is the mapped one."""

    EXACT = auto()  # the kernel's own link to it, unless the process executed something else
    HELD = auto()  # opened as the mapped file, and not changed since
    PROGRAM = auto()  # the program of the process, which is perhaps another file
    ROOT = auto()  # the path in the right mount namespace
    SHARED = auto()  # the path in a mount namespace that may be another one


def open_mapped(mapping: Mapping, pids: tuple[int, ...]) -> int:
    """A descriptor of a mapped file, of whatever kind, for reading; the caller closes it.

    Args:
        mapping: a mapping of the first of `pids`.
        pids: the process, then its ancestors, which may share its mount namespace.

    Raises:
        OSError: FileNotFoundError, no place that we can see shows the file that was mapped; EMFILE
            or ENFILE, there are too many open files.
    """
    return open_place(mapping, pids)[0]


def open_place(
    mapping: Mapping, pids: tuple[int, ...], opened: OpenFiles | None = None
) -> tuple[int, bool]:
    """The same, and whether it is the file for all processes with such a mapping.

    Otherwise it was opened in the root directory of this process: in a user's mount namespace, the
    user chooses the file at each path and inode.
    """
    for path, place in places(mapping, pids, opened):
        try:
            with opened_regular(path) as fd:
                status = os.fstat(fd)
                is_same = is_mapped_one(path, place, status, mapping, pids[0], opened=opened)
                if is_same and _has_build_id(fd, mapping.file):
                    return os.dup(fd), is_for_all(path, place, status, mapping.file)
        except FormatError:
            continue
        except OSError as error:
            if error.errno in (EMFILE, ENFILE):
                raise
    raise FileNotFoundError(mapping.file.path)


def mapped_status(mapping: Mapping, pid: int) -> os.stat_result | None:
    """Return stat(2) of a process's mapped file; None if it is not available."""
    try:
        fd = hold_place(_map_file(mapping, pid))
        try:
            return os.fstat(fd)
        finally:
            os.close(fd)
    except OSError:
        return None


def _map_file(mapping: Mapping, pid: int) -> str:
    return f"/proc/{proc.with_memory(pid)}/map_files/{mapping.start:x}-{mapping.end:x}"


def is_for_all(path: str, place: Trust, status: os.stat_result, file: MappedFile) -> bool:
    """Return True if an open file is the mapped one for all processes with such a mapping.

    A process can put another file behind its own link, by mmap(2), between any two looks at it.
    """
    return path == file.path or (place is Trust.EXACT and _has_device_and_inode(status, file))


def _has_build_id(fd: int, file: MappedFile) -> bool:
    """Return True if an open file has the build id of a mapping, if the mapping has one."""
    return not file.build_id or image_of(fd, file.path).build_id == file.build_id


def was_written(opened: OpenFiles | None, mapping: Mapping, pid: int, identity: Identity) -> bool:
    """Return True if a file was written to since the process that maps it was looked at.

    Its functions may be elsewhere now. Devices and inodes are not compared: on overlayfs and btrfs
    they depend on the way to a file.
    """
    noted = None if opened is None else opened.noted(mapping, pid)
    return noted is not None and (noted.mtime_ns, noted.size) != (identity.mtime_ns, identity.size)


def places(
    mapping: Mapping, pids: tuple[int, ...], opened: OpenFiles | None = None
) -> Iterator[tuple[str, Trust]]:
    """Yield the paths that may show a mapped file, with the trust in each, best first."""
    path = mapping.file.path
    yield _map_file(mapping, pids[0]), Trust.EXACT
    fd = None if opened is None else opened.held(mapping, pids[0])
    if fd is not None:
        yield f"/proc/self/fd/{fd}", Trust.HELD
    if mapping.file.deleted or mapping.file.is_memory_file:
        yield f"/proc/{proc.with_memory(pids[0])}/exe", Trust.PROGRAM
    if not mapping.file.deleted and path.startswith("/"):  # not "[vsyscall]" in a directory of ours
        yield f"/proc/{proc.with_memory(pids[0])}/root{path}", Trust.ROOT
        for ancestor in pids[1:]:
            yield f"/proc/{proc.with_memory(ancestor)}/root{path}", Trust.SHARED
        yield path, Trust.SHARED


def is_mapped_one(
    path: str,
    place: Trust,
    status: os.stat_result,
    mapping: Mapping,
    pid: int,
    *,
    opened: OpenFiles | None = None,
) -> bool:
    """Return True if an open file is the mapped one, as far as its inode tells, and as it was.

    At paths, the device is compared only where another mount namespace makes a chance match
    possible, and not for file systems without a device (major 0): btrfs and overlayfs report
    another one in stat(2) than in /proc/PID/maps.
    """
    file = mapping.file
    if was_written(opened, mapping, pid, Identity.of(status)):
        return False
    if place is Trust.PROGRAM:
        is_same_path = os.readlink(path).removesuffix(" (deleted)") == file.path
        return is_same_path and bool(file.inode) and _has_device_and_inode(status, file)
    if place is Trust.HELD or not file.inode:
        return True
    if place is Trust.EXACT:
        return _has_device_and_inode(status, file) or _is_still_mapped(mapping, pid)
    if status.st_ino != file.inode:
        return False
    has_device = os.major(status.st_dev) and file.major
    is_shared = place is Trust.SHARED
    return not (is_shared and has_device) or _has_device_and_inode(status, file)


def _has_device_and_inode(status: os.stat_result, file: MappedFile) -> bool:
    device = os.major(status.st_dev), os.minor(status.st_dev)
    return device == (file.major, file.minor) and status.st_ino == file.inode


def _is_still_mapped(mapping: Mapping, pid: int) -> bool:
    """Return True if /proc/PID/maps has a mapping: the process has not executed another program."""
    file = mapping.file
    try:
        lines = "\n" + (proc.maps(pid) or "")
    except KernelError:
        return False
    begin = lines.find(f"\n{mapping.start:08x}-{mapping.end:08x} ") + 1
    fields = lines[begin : lines.find("\n", begin)].split(maxsplit=5) if begin else []
    if len(fields) < 6:
        return False
    _, _, _, device, inode, path = fields
    major, minor = (int(number, 16) for number in device.split(":"))
    now = mapped_file(path, major, minor, int(inode), file.build_id)
    return now._replace(deleted=file.deleted) == file
