"""Attach a BPF iterator: a program that the kernel runs over its tasks, maps, sockets... when read.

Linux 5.8 (commit 15d83c4d7cef); over one map's elements 5.9 (commit a5cbe05a6673, "bpf: Implement
bpf iterator for map elements"), over one task 6.1 (commit f0d74c4da1f0, "bpf: Parameterize task
iterators."), over cgroups 6.1 (commit d4ccaf58a847, "bpf: Introduce cgroup iter"; bpf_iter.rst).
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, BinaryIO

from purebpf.abi.bpf import bpf_attach_type
from purebpf.errors import FormatError, KernelError, SchemaError
from purebpf.loader.attach._common.errors import attach_error
from purebpf.loader.host import cgroups
from purebpf.loader.maps.map import Map
from purebpf.loader.programs.link import Link
from purebpf.loader.programs.program import Program
from purebpf.syscall import bpf
from purebpf.syscall.command import Field
from purebpf.syscall.descriptor import Descriptor

if TYPE_CHECKING:
    from purebpf.btf.types.parse import Btf

__all__ = ["IteratorLink", "attach"]

_CHUNK = 1 << 16
_ORDERS = {
    "self": 1,
    "descendants": 2,
    "descendants_post": 3,
    "ancestors": 4,
}
"""enum bpf_cgroup_iter_order."""

_OF_MAPS, _OF_TASKS = ("map",), ("pid", "tid")
_OPTIONS: dict[str, tuple[str, ...]] = {
    "bpf_map_elem": _OF_MAPS,
    "bpf_sk_storage_map": _OF_MAPS,
    "sockmap": _OF_MAPS,
    "task": _OF_TASKS,
    "task_file": _OF_TASKS,
    "task_vma": _OF_TASKS,
    "cgroup": ("cgroup",),
}
"""What each kind can run over: the kernel would take one for the other."""


class IteratorLink(Link):
    """An iterator that can be read as often as wanted, each time from the beginning."""

    def __init__(self, what: str, *, link: Descriptor, btf: Btf | None = None) -> None:
        super().__init__(what, link=link)
        self._btf = btf

    def open_file(self) -> BinaryIO:
        """Return the program's output as a file; the program runs while it is read.

        Raises:
            ValueError: the link is closed.
            KernelError: EINVAL, the link is not an iterator's.
        """
        return os.fdopen(bpf.iter_create(self.fileno()).detach(), "rb")

    def read(self) -> bytes:
        """Everything the program writes, once.

        Raises:
            ValueError, KernelError: as `open_file`.
            OSError: an error of the program: EAGAIN when it asked to stop.
        """
        with self.open_file() as file:
            return file.read()

    def records(self, type: str) -> Iterator[Any]:  # noqa: A002 - as in Map.read
        """Return the values that a program writes with bpf_seq_write(), once, by a type of its
        object.

        `type` is `"struct event"` or `"event"`. The program runs while the caller iterates.

        Raises:
            SchemaError: the object's BTF has no such type.
            FormatError: the output is not a whole number of records.
            ValueError, KernelError, OSError: as `read`.
        """
        if self._btf is None:
            raise SchemaError(f"{self.what}: its program has no BTF; use read()")
        from purebpf.btf.codec.codecs import codec
        from purebpf.loader.rings.record_types import type_named

        record = codec(self._btf, type_named(self._btf, type, self.what))
        rest = b""
        with self.open_file() as file:
            while chunk := os.read(file.fileno(), _CHUNK):
                rest += chunk
                whole = len(rest) - len(rest) % record.size
                yield from record.iter_decode(rest[:whole])
                rest = rest[whole:]
        if rest:
            raise FormatError(self.what, "the end", f"{len(rest)} of {record.size} bytes of {type}")


def attach(
    program: Program,
    target: None = None,
    *,
    map: Map | None = None,  # noqa: A002 - the kernel's word
    pid: int = 0,
    tid: int = 0,
    cgroup: str | None = None,
    order: str = "self",
) -> IteratorLink:
    """Make `program` readable.

    Args:
        program: it runs for each object; its section names the kind: `SEC("iter/task")`.
        target: there is none.
        map: the map of the elements that it runs over (`iter/bpf_map_elem`, `iter/sockmap`).
        pid: only the threads of this process (`iter/task`, `task_file`, `task_vma`).
        tid: only this thread.
        cgroup: where in the cgroup file system it starts (`iter/cgroup`).
        order: and where it goes: "self", "descendants" (before their children),
            "descendants_post" (after them), "ancestors".

    Raises:
        TypeError: a target, more than one thing to run over, or one that others run over.
        ValueError: an unknown order; a number that no process has; the program is closed.
        KernelError: there is no such cgroup.
        AttachError: the kernel refused: EINVAL, the kind of iterator needs another option.
    """
    given = [
        name
        for name, value in (("map", map), ("pid", pid), ("tid", tid), ("cgroup", cgroup))
        if value not in (None, 0)
    ]
    if target is not None or len(given) > 1:
        raise TypeError(f"program {program.name!r} takes one of map=, pid=, tid= and cgroup=")
    takes = _OPTIONS.get(program.target, ())
    what_it_takes = f"{program.section} takes {' or '.join(f'{name}=' for name in takes)}"
    if takes and not set(given) <= set(takes):
        raise TypeError(f"program {program.name!r}: {what_it_takes}, not {given[0]}=")
    if order not in _ORDERS:
        raise ValueError(f"unknown order {order!r}; known: {', '.join(_ORDERS)}")
    description = f"iterator {program.name!r} over {program.target}"
    fields: dict[str, Field] = {}
    with ExitStack() as stack:
        if map is not None:
            fields["iter_info"] = struct.pack("=Ixxxxxxxxxxxx", map.fileno())
        elif cgroup is not None:
            cgroup_fd = stack.enter_context(cgroups.open_cgroup_directory(cgroup)).fileno()
            fields["iter_info"] = struct.pack("=IIQ", _ORDERS[order], cgroup_fd, 0)
        elif pid or tid:
            fields["iter_info"] = _task(tid, pid)
        if info := fields.get("iter_info"):
            assert isinstance(info, bytes)
            fields["iter_info_len"] = len(info)
        try:
            link_fd = bpf.link_create(
                bpf_attach_type.BPF_TRACE_ITER, prog_fd=program.fileno(), **fields
            )
        except KernelError as error:
            why = dict.fromkeys((errno.EINVAL, errno.EBADF), what_it_takes if takes else "")
            raise attach_error(error, description, why) from None
    return IteratorLink(description, link=link_fd, btf=program.btf)


def _task(tid: int, pid: int) -> bytes:
    try:
        return struct.pack("=IIIxxxx", tid, pid, 0)
    except struct.error:
        raise ValueError(f"no process or thread has ID {tid or pid}") from None
