"""System calls by number and by name, for every ABI that a machine runs.

A 64-bit kernel also runs calls of a 32-bit ABI, with other numbers: 4 is `stat` on x86-64 and
`write` on i386. x32 calls are calls of x86-64 with bit 30 set in the number.
"""

from __future__ import annotations

from functools import cache

from purebpf.abi.tables import read_table
from purebpf.tuples import NamedTuple

__all__ = ["ABIS", "X32_BIT", "MachineAbis", "machine", "name", "number", "table"]

X32_BIT = 1 << 30
"""__X32_SYSCALL_BIT of arch/x86/include/uapi/asm/unistd.h."""

ABIS = ("x86_64", "i386", "x32", "aarch64", "arm")


class MachineAbis(NamedTuple):
    """The ABIs of a machine.

    Attributes:
        native: of its 64-bit programs.
        compat: of its 32-bit programs, or "".
        x32: of calls with X32_BIT, or "".
        compat_flag: the bit that marks a 32-bit call: TS_COMPAT in thread_info.status on x86,
            _TIF_32BIT in thread_info.flags on arm64.
    """

    native: str
    compat: str
    x32: str
    compat_flag: int

    @property
    def abis(self) -> tuple[str, ...]:
        """The ABIs that the machine has."""
        return tuple(filter(None, (self.native, self.compat, self.x32)))


_MACHINES = {
    "x86_64": MachineAbis("x86_64", "i386", "x32", 0x2),
    "aarch64": MachineAbis("aarch64", "arm", "", 1 << 22),
}


def machine(name: str) -> MachineAbis:
    """The ABIs of the machine that uname(2) calls `name`; without a table where there is none."""
    return _MACHINES.get(name, MachineAbis(name, "", "", 0))


@cache
def table(abi: str) -> dict[int, str]:
    """The names of an ABI's calls by number; empty for an ABI without a table."""
    if abi not in ABIS:
        return {}
    rows = (line.split(" ") for line in read_table(f"syscalls_{abi}").splitlines())
    return {int(nr): called for nr, called in rows}


def name(abi: str, number: int) -> str:
    """The name of a call, `"syscall:N"` where it has none."""
    return table(abi).get(number) or f"syscall:{number}"


def number(abi: str, name: str) -> int | None:
    """The number of a call; None where this ABI does not have the call."""
    return _by_name(abi).get(name)


@cache
def _by_name(abi: str) -> dict[str, int]:
    return {called: nr for nr, called in table(abi).items()}
