"""System calls and errors by name and by number, as the options name them. Pure but for uname."""

from __future__ import annotations

import errno
import os
from argparse import ArgumentTypeError
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache

from purebpf import errors
from purebpf.abi import syscalls
from purebpf.tuples import NamedTuple

__all__ = ["Call", "call", "call_list", "errno_name", "errno_number", "slots"]

_RESTARTS = {
    512: "ERESTARTSYS",
    513: "ERESTARTNOINTR",
    514: "ERESTARTNOHAND",
    515: "ENOIOCTLCMD",
    516: "ERESTART_RESTARTBLOCK",
    517: "EPROBE_DEFER",
    524: "ENOTSUPP",
}
"""Errors that a kernel keeps to itself (include/linux/errno.h) and a tracer sees all the same."""

_ERRNOS = {number: errors.errno_name(number) for number in errno.errorcode} | _RESTARTS


class Call(NamedTuple):
    """A system call: its ABI, its number there, and its name as perf prints it.

    `name` is "openat", or "openat(i386)" of another ABI than the machine's own; "syscall:N" where
    it is unknown.
    """

    abi: str
    nr: int
    name: str


@cache
def call(nr: int, abi: int) -> Call:
    """The call with a number; `abi` as in bpf_src/summary.bpf.c: 0 is 64-bit, 1 is 32-bit."""
    machine = syscalls.machine(os.uname().machine)
    if abi and machine.compat:
        return _name_call(machine.compat, nr, f"({machine.compat})")
    if machine.x32 and nr & syscalls.X32_BIT and nr < 2 * syscalls.X32_BIT:
        return _name_call(machine.x32, nr & ~syscalls.X32_BIT, f"({machine.x32})")
    return _name_call(machine.native, nr, "")


def _name_call(abi: str, nr: int, suffix: str) -> Call:
    return Call(abi, nr, syscalls.name(abi, nr) + suffix)


def call_list(text: str) -> tuple[str, ...]:
    """`"read,openat"`: names that an ABI of this machine knows, for argparse."""
    machine = syscalls.machine(os.uname().machine)
    call_names = {name for abi in machine.abis for name in syscalls.table(abi).values()}
    names = tuple(dict.fromkeys(text.split(",")))
    for name in names:
        if name not in call_names:
            raise ArgumentTypeError(f"unknown system call {name!r}{_similar(name, call_names)}")
    return names


def slots(names: Iterable[str]) -> list[list[int]]:
    """The numbers of `names` in the ABIs that the program tells apart: native, 32-bit, x32."""
    machine = syscalls.machine(os.uname().machine)
    numbers_by_kind: list[list[int]] = []
    for abi in (machine.native, machine.compat, machine.x32):
        numbers = (syscalls.number(abi, name) for name in names)
        numbers_by_kind.append([number for number in numbers if number is not None])
    return numbers_by_kind


def errno_name(number: int) -> str:
    """`"ENOENT"` of 2; `"errno 4000"` of one without a name."""
    return _ERRNOS.get(number, f"errno {number}")


def errno_number(text: str) -> int:
    """The number of an error by its name, or a number itself, for argparse."""
    if text.isascii() and text.isdigit() and 0 < int(text) < 4096:
        return int(text)
    by_name = {name: number for number, name in _ERRNOS.items()}
    by_name |= {name: number for name, number in vars(errno).items() if name.startswith("E")}
    if text not in by_name:
        raise ArgumentTypeError(f"unknown error {text!r}{_similar(text.upper(), by_name)}")
    return by_name[text]


def _similar(name: str, call_names: Iterable[str]) -> str:
    close = get_close_matches(name, list(call_names), n=1)
    return f"; did you mean {close[0]}?" if close else ""
