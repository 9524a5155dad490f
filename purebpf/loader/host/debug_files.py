"""Separate debug files: where they are, and whether they belong to the file they are for.

The places are those that gdb looks in (its manual, "Separate Debug Files"): by build id below
/usr/lib/debug/.build-id, then by the name in .gnu_debuglink beside the file, in .debug/ there, and
below /usr/lib/debug. In the mount namespace of the process first (a container's), then in ours.

Every user may mount anything over these places in their own namespace (user_namespaces(7)), but
owns the files put there. So a debug file must belong to the owner of the file that it is for, or to
root: else it would name other users' programs.
"""

from __future__ import annotations

import os
from binascii import crc32
from collections.abc import Callable, Container, Iterator, Sequence
from typing import NoReturn, SupportsIndex

from purebpf.closable import refuse_copy
from purebpf.errors import FormatError
from purebpf.files.regular_file import open_regular
from purebpf.symbols.elf_image import ElfImage
from purebpf.syscall import proc
from purebpf.tuples import NamedTuple

__all__ = ["DebugFile", "Fetch", "Spend", "debug_file", "image_of", "open_part"]

_DEBUG = "/usr/lib/debug"
_CRC_CHUNK = 1 << 20
_MAX_CRC = 1 << 32
"""Bytes that a file found by its name alone may have: all of it is read to know it again."""

Fetch = Callable[[str], str | None]
"""Build id (hex) -> the path of its debug file, got from elsewhere."""

Spend = Callable[[int], object]
"""Called with the bytes about to be read, and may raise (`purebpf.symbols.budget`)."""


class DebugFile(NamedTuple):
    """An open debug file; the caller closes `fd`."""

    path: str
    fd: int
    image: ElfImage

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> NoReturn:
        refuse_copy(self, protocol)


def debug_file(
    image: ElfImage,
    path: str,
    pids: Sequence[int],
    has: Callable[[ElfImage], bool],
    fetch: Fetch | None = None,
    *,
    owner: int,
    spend: Spend | None = None,
) -> DebugFile | None:
    """Return the debug file of an image, if there is one that `has` accepts.

    Args:
        image: of the file that was mapped.
        path: of that file, as its process sees it.
        pids: processes; their mount namespaces are searched before our own.
        has: whether a file is of use.
        fetch: called if there is no file.
        owner: the user ID of the image's file.
        spend: called with the bytes read.

    Raises:
        Exception: any exception of `spend`.
    """
    owners = {owner, 0, os.geteuid()}
    for candidate in _places(image, path):
        for root in _roots(pids):
            debug = _open_debug_file(root + candidate, image, has, owners, spend)
            if debug is not None:
                return debug
    if fetch is None or not image.build_id:
        return None
    fetched = fetch(image.build_id)
    return None if fetched is None else _open_debug_file(fetched, image, has, owners, spend)


def open_part(path: str, pids: Sequence[int], *, owner: int) -> int | None:
    """Return a descriptor of a file with a part of a program's DWARF; None: it is not there.

    Args:
        path: absolute, as the program's build or its process names it.
        pids: processes; their mount namespaces are searched before our own.
        owner: the user ID of the program's file.
    """
    owners = {owner, 0, os.geteuid()}
    for root in _roots(pids):
        fd = _open_owned(root + path, owners)
        if fd is not None:
            return fd
    return None


def _roots(pids: Sequence[int]) -> Iterator[str]:
    yield from (f"/proc/{proc.with_memory(pid)}/root" for pid in pids)
    yield ""


def _open_owned(path: str, owners: Container[int]) -> int | None:
    """Return a descriptor of a regular file of one of `owners`; None: there is none."""
    try:
        fd = open_regular(path)
    except OSError:
        return None
    if os.fstat(fd).st_uid in owners:
        return fd
    os.close(fd)
    return None


def _open_debug_file(
    path: str,
    image: ElfImage,
    has: Callable[[ElfImage], bool],
    owners: Container[int],
    spend: Spend | None,
) -> DebugFile | None:
    fd = _open_owned(path, owners)
    if fd is None:
        return None
    try:
        debug = image_of(fd, path, spend)
        if has(debug) and _belongs(debug, image, fd, spend):
            opened = DebugFile(path, fd, debug)
            fd = -1
            return opened
    except (OSError, FormatError):
        pass
    finally:
        if fd >= 0:
            os.close(fd)
    return None


def _places(image: ElfImage, path: str) -> Iterator[str]:
    build_id = image.build_id
    if len(build_id) > 2:
        yield f"{_DEBUG}/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
    if image.debug_link:
        name = image.debug_link[0]
        directory = os.path.dirname(path)
        yield from (f"{directory}/{name}", f"{directory}/.debug/{name}")
        yield f"{_DEBUG}{directory}/{name}"


def _belongs(debug: ElfImage, image: ElfImage, fd: int, spend: Spend | None) -> bool:
    if image.build_id:
        return debug.build_id == image.build_id
    return image.debug_link is not None and _crc(fd, spend) == image.debug_link[1]


def _crc(fd: int, spend: Spend | None) -> int | None:
    """The CRC-32 of a file; None for one that is larger than debug files are."""
    if os.fstat(fd).st_size > _MAX_CRC:
        return None
    crc = offset = 0
    while chunk := os.pread(fd, _CRC_CHUNK, offset):
        if spend is not None:
            spend(len(chunk))
        crc = crc32(chunk, crc)
        offset += len(chunk)
        if offset > _MAX_CRC:
            return None
    return crc


def image_of(fd: int, source: str, spend: Spend | None = None) -> ElfImage:
    """The ELF file in an open file, which must stay open while it is read.

    `spend` is called with the bytes read.
    """

    def read(offset: int, size: int) -> bytes:
        if spend is not None:
            spend(size)
        return os.pread(fd, size, offset)

    def check() -> None:
        if spend is not None:
            spend(0)

    return ElfImage(read, os.fstat(fd).st_size, source, check)
