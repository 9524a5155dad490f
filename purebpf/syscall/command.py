"""Issuing bpf(2) commands: fields to attr, the call, the attr back.

Commands are issued by `purebpf.syscall.bpf` only, which documents the rules. An address is a plain
integer and keeps nothing alive: the caller holds the object until the system call has returned.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping

from purebpf.abi.bpf import bpf_cmd
from purebpf.abi.layouts import ATTR
from purebpf.abi.names import FIT_FOR_OBJECT_NAME, OBJECT_NAME_LENGTH
from purebpf.errors import KernelError
from purebpf.syscall import backend
from purebpf.syscall.buffer import array_type
from purebpf.tuples import NamedTuple

Field = int | bytes | bytearray | None
"""A field's value: a number, the name of a map or program, or memory for the kernel.

A name may have any length and characters: the kernel gets 15 bytes, with _ for what it refuses.
"""


class BatchResult(NamedTuple):
    """The result of a batch command: the elements `done`, and 0 or the errno it stopped with.

    ENOENT means that the map has no more: the `done` elements before it are valid. `done` means
    nothing with EINVAL and ENOTSUPP, where some kernels leave it untouched.
    """

    done: int
    errno: int


class TestRunResult(NamedTuple):
    """The report of BPF_PROG_TEST_RUN; sizes in bytes, `duration_ns` the mean of the runs."""

    retval: int
    duration_ns: int
    data_size_out: int
    ctx_size_out: int


class Log:
    """A buffer for the verifier's or the BTF checker's log.

    Attributes:
        level: 1 branches, 2 every instruction, 4 statistics only; flags.
        buffer: the kernel's output, NUL-terminated.
        true_size: bytes that the whole log would need, 0 before the call and before Linux 6.4
            (commit 47a71c1f9af0, "bpf: Add log_true_size output field to return necessary log
            buffer size").
    """

    __slots__ = ("buffer", "level", "true_size")

    def __init__(self, size: int, level: int = 1) -> None:
        self.level = level
        self.buffer = bytearray(size)
        self.true_size = 0

    def text(self) -> str:
        """Return the log up to its NUL; it may precede a failure."""
        return self.buffer.partition(b"\0")[0].decode(errors="replace")


def issue(cmd: bpf_cmd, layout: str, fields: Mapping[str, Field]) -> tuple[int, bytearray]:
    """Make the call: its result (or negated errno) and the attr as the kernel left it."""
    known = ATTR[layout]
    data = bytearray(known.size)
    for name, value in fields.items():
        offset, code = known.fields[name]
        if not value:  # as it is zeroed
            continue
        if code.endswith("s"):  # a name: cut and cleaned here, as bpf_obj_name_cpy() refuses others
            assert not isinstance(value, int)
            value = bytes(value).translate(FIT_FOR_OBJECT_NAME)[:OBJECT_NAME_LENGTH]  # noqa: PLW2901
        elif not isinstance(value, int):
            value = address_of(value)  # noqa: PLW2901
        try:
            struct.pack_into("=" + code, data, offset, value)
        except struct.error:
            known.pack(**{name: value})  # raises what says so
            raise
    attr = array_type(known.size).from_buffer(data)
    return backend.current.bpf(cmd, attr, known.size), data


def address_of(data: bytes | bytearray | None) -> int:
    """The address of the first byte of `data`; 0 for None and for nothing.

    The kernel may write only to a bytearray. The bytearray must not be resized while the
    address is in use.
    """
    if not data:
        return 0
    if isinstance(data, bytearray):
        return ctypes.addressof(ctypes.c_char.from_buffer(data))
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0


def command(cmd: bpf_cmd, layout: str, **fields: Field) -> int:
    """Issue a command without outputs besides its result; raises `KernelError`."""
    result, _ = issue(cmd, layout, fields)
    if result < 0:
        raise explain_refusal(cmd, result)
    return result


def explain_refusal(cmd: bpf_cmd, result: int) -> KernelError:
    """The error that a negated errno is."""
    return KernelError(f"bpf({cmd.name})", -result)


def number(layout: str, attr: bytearray, name: str) -> int:
    """A field of the attr after the call."""
    offset, code = ATTR[layout].fields[name]
    value: int = struct.unpack_from("=" + code, attr, offset)[0]
    return value
