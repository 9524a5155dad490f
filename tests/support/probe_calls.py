"""Asking the kernel without the package's help; what is open, loaded and mounted."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Sequence
from pathlib import Path

from purebpf.abi.instruction import EXIT, Instruction, pack
from purebpf.errors import errno_name

LIBC = ctypes.CDLL(None, use_errno=True)
SYSCALLS = {"x86_64": (321, 298), "aarch64": (280, 241)}
"""bpf(2) and perf_event_open(2), by machine."""


def syscall(which: int, *arguments: object) -> str:
    """Call the first or the second of them: "", or the name of the error; no descriptor stays."""
    numbers = SYSCALLS.get(os.uname().machine)
    if numbers is None:
        return f"no system call numbers for {os.uname().machine}"
    result = LIBC.syscall(numbers[which], *arguments)
    if result < 0:
        return errno_name(ctypes.get_errno())
    os.close(result)
    return ""


ANSWER_ZERO = (Instruction(0xB7, 0, 0, 0, 0), Instruction(EXIT, 0, 0, 0, 0))
"""The shortest program."""


def program_load(
    program_type: int,
    code: Sequence[Instruction] = ANSWER_ZERO,
    *,
    flags: int = 0,
    attach_type: int = 0,
    target: int = 0,
) -> str:
    """What bpf(BPF_PROG_LOAD) says to a program, as `syscall`; `target` is a BTF id."""
    instructions = ctypes.create_string_buffer(pack([*code]))
    text = ctypes.create_string_buffer(b"GPL")
    attr = ctypes.create_string_buffer(120)
    places = ctypes.addressof(instructions), ctypes.addressof(text)
    struct.pack_into("=IIQQ", attr, 0, program_type, len(code), *places)
    for at, value in ((44, flags), (68, attach_type), (108, target)):
        struct.pack_into("=I", attr, at, value)
    problem = syscall(0, 5, attr, len(attr))
    return f"bpf(BPF_PROG_LOAD) says {problem}" if problem else ""


def mounts() -> list[tuple[str, str]]:
    """Mount point and file system type of each mount, in order."""
    rows = [line.split(" ") for line in Path("/proc/self/mounts").read_text().splitlines()]
    return [(row[1], row[2]) for row in rows]


def descriptors() -> dict[str, str]:
    """This process's open descriptors: number to what it refers to."""
    found = {}
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found[entry.name] = str(entry.readlink())
        except FileNotFoundError:  # the descriptor of the listing itself
            continue
    return found


def kernel_objects() -> dict[str, set[int]]:
    """The ids of every program, map and link of this kernel."""
    return {"program": _ids(11), "map": _ids(12), "link": _ids(31)}


def _ids(command: int) -> set[int]:
    numbers = SYSCALLS[os.uname().machine]
    found: set[int] = set()
    last = 0
    while True:
        attr = ctypes.create_string_buffer(struct.pack("=I", last), 16)
        if LIBC.syscall(numbers[0], command, attr, 16) < 0:
            return found
        (last,) = struct.unpack_from("=I", attr, 4)
        found.add(last)
