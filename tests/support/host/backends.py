"""Backends of bpf(2) and perf_event_open(2) that refuse some calls."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import NamedTuple

from purebpf.abi.bpf import bpf_cmd, bpf_map_type
from purebpf.abi.layouts import ATTR
from purebpf.syscall.backend import KernelBackend


class Call(NamedTuple):
    """One system call as it reached the substitute; `number` counts from 1."""

    number: int
    command: str
    attr: bytes

    def field(self, layout: str, name: str) -> int | bytes:
        return ATTR[layout].unpack(self.attr)[name]


def memory(address: int, size: int) -> bytes:
    """What the caller put at an address of its attr."""
    return ctypes.string_at(address, size)


def answer_map_info(attr: ctypes.Array[ctypes.c_char], key_size: int, value_size: int) -> int:
    """What the kernel does for BPF_OBJ_GET_INFO_BY_FD of a hash: fill in the sizes."""
    info = ATTR["info"].unpack(bytes(attr))
    sizes = struct.pack("=IIII", bpf_map_type.BPF_MAP_TYPE_HASH, 1, key_size, value_size)
    ctypes.memmove(int(info["info"]), sizes, min(len(sizes), int(info["info_len"])))
    return 0


class Interposer:
    """The kernel's substitute, but `decide(call)` may answer instead: an errno refuses the call.

    Attributes:
        calls: everything that was asked, in order.
    """

    def __init__(self, decide: Callable[[Call], int | None] = lambda call: None) -> None:
        self._kernel = KernelBackend()
        self._decide = decide
        self.calls: list[Call] = []

    def bpf(self, command: int, attr: int, size: int) -> int:
        refused = self._asked(bpf_cmd(command).name, ctypes.string_at(attr, size))
        return -refused if refused else self._kernel.bpf(command, attr, size)

    def perf_event_open(self, attr: int, pid: int, cpu: int, group: int, flags: int) -> int:
        refused = self._asked("perf_event_open", b"")
        return -refused if refused else self._kernel.perf_event_open(attr, pid, cpu, group, flags)

    def _asked(self, command: str, attr: bytes) -> int | None:
        call = Call(len(self.calls) + 1, command, attr)
        self.calls.append(call)
        return self._decide(call)

    @property
    def commands(self) -> list[str]:
        return [call.command for call in self.calls]


def failing(number: int, error: int) -> Interposer:
    """A substitute at which the call of that number fails."""
    return Interposer(lambda call: error if call.number == number else None)
