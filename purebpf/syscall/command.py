"""How a bpf(2) command is issued: fields to attr, the call, the attr back.

Used by `purebpf.syscall.bpf` only, which documents the rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from purebpf.abi.bpf import bpf_cmd
from purebpf.abi.layouts import ATTR
from purebpf.errors import KernelError
from purebpf.syscall import backend
from purebpf.syscall.buffer import Buffer, address_of

Field = int | bytes | bytearray | None
"""A field's value: a number, an inline string, or memory for the kernel to read or write."""


class BatchResult(NamedTuple):
    """What a batch command did: the elements `done`, and 0 or the errno it stopped with.

    ENOENT means that the map has no more: the `done` elements before it are valid. `done` means
    nothing with EINVAL and ENOTSUPP, where some kernels leave it untouched.
    """

    done: int
    errno: int


class TestRun(NamedTuple):
    """What BPF_PROG_TEST_RUN reports; sizes in bytes, `duration_ns` the mean of the runs."""

    retval: int
    duration_ns: int
    data_size_out: int
    ctx_size_out: int


class Log:
    """A buffer for the verifier's or the BTF checker's log.

    Attributes:
        level: 1 branches, 2 every instruction, 4 statistics only; flags.
        buffer: what the kernel writes, NUL-terminated.
        true_size: bytes that the whole log would need, 0 before the call and before Linux 6.4.
    """

    __slots__ = ("buffer", "level", "true_size")

    def __init__(self, size: int, level: int = 1) -> None:
        self.level = level
        self.buffer = bytearray(size)
        self.true_size = 0

    def text(self) -> str:
        """The log up to its NUL; also what was written before a failure."""
        return self.buffer.partition(b"\0")[0].decode(errors="replace")


def issue(cmd: bpf_cmd, layout: str, fields: Mapping[str, Field]) -> tuple[int, bytearray]:
    """Make the call: its result (or negated errno) and the attr as the kernel left it."""
    places = ATTR[layout].fields
    values = {
        name: _packable(value, places[name][1])
        for name, value in fields.items()
        if value is not None
    }
    attr = Buffer(ATTR[layout].pack(**values))
    return backend.bpf(cmd, attr.array, len(attr.data)), attr.data


def _packable(value: int | bytes | bytearray, code: str) -> int | bytes:
    if isinstance(value, int):
        return value
    return bytes(value) if code.endswith("s") else address_of(value)


def command(cmd: bpf_cmd, layout: str, **fields: Field) -> int:
    """Issue a command of which only the result matters; raises `KernelError`."""
    result, _ = issue(cmd, layout, fields)
    return checked(cmd, result)


def checked(cmd: bpf_cmd, result: int) -> int:
    """`result`, unless it is a negated errno: then a `KernelError`."""
    if result < 0:
        raise KernelError(f"bpf({cmd.name})", -result)
    return result


def number(layout: str, attr: bytearray, name: str) -> int:
    """A field of the attr after the call."""
    found = ATTR[layout].unpack(attr)[name]
    assert isinstance(found, int)
    return found
