"""Programs and libraries by the names that a process has for them.

The file behind a name depends on the process: it may have another root directory, libraries from a
folder that only its environment names, or files that were replaced since it started. A probe in the
file that this machine has by that name would never be hit.
"""

from __future__ import annotations

import os

from purebpf.errors import KernelError
from purebpf.files.path_steps import open_place
from purebpf.files.regular_file import Identity
from purebpf.late_pattern import compile_later
from purebpf.symbols.proc_maps import Mapping, parse_maps
from purebpf.syscall import proc
from purebpf.syscall.device import file_system_of

__all__ = [
    "code_mappings",
    "has_other_mounts",
    "mapped_path",
    "probed_inode",
    "root_of",
    "status_of",
]

_OVERLAYFS = 0x794C7630
"""OVERLAYFS_SUPER_MAGIC of include/uapi/linux/magic.h."""

_STEM = compile_later(r"(.*?)(?:-[0-9.]+)?\.so(?:\..*)?")
"""`libc` of `libc.so.6`, and of `libc-2.31.so`, as glibc named its files before 2.34."""
_MUSL = compile_later(r"ld-musl-.*\.so\.1")
_IN_MUSL = frozenset({"libc", "libm", "libpthread", "librt", "libdl"})
"""Libraries that musl keeps in one file with its dynamic linker."""


def code_mappings(pid: int) -> list[Mapping]:
    """List the mappings of files whose code a process may run; none if they cannot be read."""
    try:
        text = proc.maps(pid)
    except KernelError:
        return []
    return [mapping for mapping in parse_maps(text or "") if mapping.file.path.startswith("/")]


def hides_mappings(pid: int) -> bool:
    """Return True for a process that exists, and whose mappings this process may not read."""
    try:
        return proc.maps(pid) is None and proc.comm(pid) is not None
    except KernelError:
        return True


def has_other_mounts(pid: int) -> bool:
    """Return True if a process may have other files than this one by the same paths.

    /proc/PID/mountinfo shows the mounts below the root directory of the process, and needs no
    rights; the number of a mount is another one in another mount namespace.
    """
    try:
        return all(
            proc.read(f"{proc.PROC}/{pid}/mountinfo") != proc.read(f"{proc.PROC}/self/mountinfo")
            for _ in range(2)  # one of ours may have come between
        )
    except KernelError:
        return True


def root_of(pid: int) -> str:
    """Return the root directory of a process, `/proc/PID/root`; "" if it is ours."""
    folder = f"/proc/{proc.with_memory(pid)}"
    try:
        # stat(2) may ask the file system of another user, which need not answer
        is_ours = all(
            os.readlink(f"{folder}/{name}") == os.readlink(f"/proc/self/{name}")
            for name in ("ns/mnt", "root")
        )
    except OSError:  # no such process, or one that is not ours to look at
        return ""
    return "" if is_ours else f"{folder}/root"


def mapped_path(name: str, pid: int) -> str:
    """Return a path to the file that a process has mapped under a name; "" if it has none.

    Args:
        name: a path as the process has it, or a name without a slash: `libc`, `libpq.so.5`, `shop`.
        pid: the process.
    """
    rank = _rank_path if "/" in name else _rank_name
    ranked = [(rank(each.file.path, name), each) for each in code_mappings(pid)]
    # a deleted file and the one that took its place may both be mapped
    order = [(rank, each.file.deleted, each.start, each) for rank, each in ranked if rank]
    return _path_to(min(order)[-1], pid) if order else ""


def probed_inode(path: str, identity: Identity) -> Identity:
    """Return the identity by which the kernel keeps probes of a file.

    Containers of one image see its files through a mount of overlayfs each, with another device.
    The probes are in the file below all of them, so one for each path would count calls twice.
    """
    try:
        fd = open_place(path)
    except OSError:
        return identity
    try:
        return (0, *identity[1:]) if file_system_of(fd) == _OVERLAYFS else identity
    finally:
        os.close(fd)


def status_of(path: str) -> os.stat_result | None:
    """Return stat(2) of a path without waiting for another user's file system; None: no file."""
    try:
        fd = open_place(path)
    except OSError:
        return None
    try:
        return os.fstat(fd)
    finally:
        os.close(fd)


def _rank_path(path: str, wanted: str) -> int:
    return int(path == wanted)


def _rank_name(path: str, name: str) -> int:
    """Return how well a mapped file has a name, 1 for best; 0 if it does not have it."""
    base = os.path.basename(path)
    if base == name:
        return 1
    if base.startswith(f"{name}.") and ".so" in name:  # libpq.so.5 is a link to libpq.so.5.15
        return 2
    library = _STEM.fullmatch(base)
    wanted = _STEM.fullmatch(name)
    stem = wanted[1] if wanted else name
    if library is not None and not (wanted and base.startswith(f"{stem}.so")):
        if library[1] == stem:
            return 3
        if library[1] == f"lib{stem}" and not wanted:
            return 4
    is_musl = _MUSL.fullmatch(base) is not None
    return 5 if is_musl and not _IN_MUSL.isdisjoint({stem, f"lib{stem}"}) else 0


def _path_to(mapping: Mapping, pid: int) -> str:
    """Return a path that leads to a mapped file: as the process has it, as we do, or its link."""
    pid, file = proc.with_memory(pid), mapping.file
    for root in () if file.deleted else (root_of(pid), ""):
        status = status_of(root + file.path)
        # some file systems report another device here than in /proc/PID/maps: btrfs, overlayfs
        if status is not None and status.st_ino == file.inode:
            return root + file.path
    return f"/proc/{pid}/map_files/{mapping.start:x}-{mapping.end:x}"
