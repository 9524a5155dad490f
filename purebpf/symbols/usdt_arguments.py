"""Where the arguments of a USDT probe are: the notes' text, as structured data.

`-4@%esi` is a signed 4-byte value in a register, `8@$-1` a constant, `2@-20(%rbp)` memory at a
register plus an offset, `4@8(%rdx,%rcx,4)` an array element. What the text looks like is up to
the machine's assembler. Registers are given as bytes into what the kernel's struct pt_regs (on
aarch64 struct user_pt_regs) is, as BPF programs read them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

__all__ = ["MAX_ARGUMENTS", "Argument", "Where", "parse_arguments"]

MAX_ARGUMENTS = 12
"""What bpf/usdt.bpf.h has room for."""


class Where(IntEnum):
    """What kind of place: enum __bpf_usdt_arg_type of bpf/usdt.bpf.h."""

    CONST = 0
    REG = 1
    REG_DEREF = 2
    SIB = 3


class Argument(NamedTuple):
    """One argument.

    Attributes:
        size: 1, 2, 4 or 8 bytes.
        signed: whether to extend its sign.
        where: what kind of place it is.
        value: the constant, or the offset from the address that is in the register.
        register: offset of the register in struct pt_regs.
        index_register: offset of the index register (SIB).
        scale: what that is multiplied with: 1, 2, 4 or 8 (SIB).
    """

    size: int
    signed: bool
    where: Where
    value: int = 0
    register: int = 0
    index_register: int = 0
    scale: int = 1


def _x86_registers() -> dict[str, int]:
    offsets: dict[str, int] = {}
    for letter, offset in (("a", 80), ("b", 40), ("c", 88), ("d", 96)):
        names = (f"r{letter}x", f"e{letter}x", f"{letter}x", f"{letter}l")
        offsets |= dict.fromkeys(names, offset)
    for stem, offset in (("si", 104), ("di", 112), ("bp", 32), ("sp", 152)):
        offsets |= dict.fromkeys((f"r{stem}", f"e{stem}", stem, f"{stem}l"), offset)
    for number, offset in zip(range(8, 16), (72, 64, 56, 48, 24, 16, 8, 0), strict=True):
        offsets |= dict.fromkeys((f"r{number}{width}" for width in ("", "d", "w", "b")), offset)
    return offsets | dict.fromkeys(("rip", "eip"), 128)


_X86_64 = _x86_registers()
_AARCH64 = {f"{width}{number}": 8 * number for number in range(31) for width in "xw"} | {"sp": 248}

_SIZED = re.compile(r"\s*([+-]?\d+)\s*@\s*")
_NUMBER = r"[+-]?(?:0[xX][0-9a-fA-F]+|\d+)"
_X86_FORMS = re.compile(
    rf"""
      \$(?P<constant>{_NUMBER})
    | %(?P<register>\w+)
    | (?P<offset>{_NUMBER})?\s*
      \(\s*%(?P<base>\w+)\s*(?:,\s*%(?P<index>\w+)\s*(?:,\s*(?P<scale>\d+)\s*)?)?\)
    """,
    re.VERBOSE,
)
_AARCH64_FORMS = re.compile(
    rf"""
      \[\s*(?P<base>[a-z]\w*)\s*(?:,\s*(?P<offset>{_NUMBER})\s*)?\]
    | (?P<constant>{_NUMBER})
    | (?P<register>[a-z]\w*)
    """,
    re.VERBOSE,
)
_END = re.compile(r"\s+|$")
_SIZES = (1, 2, 4, 8)


class _Machine(NamedTuple):
    forms: re.Pattern[str]
    registers: Mapping[str, int]


_MACHINES: Mapping[int, _Machine] = {
    62: _Machine(_X86_FORMS, _X86_64),
    183: _Machine(_AARCH64_FORMS, _AARCH64),
}
"""By e_machine of ELF."""


def parse_arguments(text: str, machine: int) -> tuple[Argument, ...]:
    """The arguments of a probe in a file for `machine` (e_machine).

    Raises:
        ValueError: an argument that is none of the forms above (a symbol's address, a vector
            register), more than 12, or a machine with unknown registers.
    """
    if machine not in _MACHINES:
        raise ValueError(f"unknown registers: ELF machine {machine}")
    arguments: list[Argument] = []
    at = 0
    while text[at:].strip():
        argument, at = _argument(text, at, _MACHINES[machine])
        arguments.append(argument)
    if len(arguments) > MAX_ARGUMENTS:
        raise ValueError(f"{len(arguments)} arguments; bpf/usdt.bpf.h has room for {MAX_ARGUMENTS}")
    return tuple(arguments)


def _argument(text: str, at: int, machine: _Machine) -> tuple[Argument, int]:
    """The argument at `at`, and where the next one starts."""
    sized = _SIZED.match(text, at)
    form = machine.forms.match(text, sized.end()) if sized else None
    end = _END.match(text, form.end()) if form else None
    if sized is None or form is None or end is None:
        raise ValueError(f"cannot parse the location {text[at:].split(maxsplit=1)[0]!r}")
    size = int(sized[1])
    if abs(size) not in _SIZES:
        raise ValueError(f"{text[at : end.start()].strip()!r}: a value of {abs(size)} bytes")
    try:
        place = _place(Argument(abs(size), size < 0, Where.CONST), form.groupdict(), machine)
    except KeyError as error:
        problem = f"unknown register {error.args[0]!r}"
        raise ValueError(f"{text[at : end.start()].strip()!r}: {problem}") from None
    return place, end.end()


def _place(sized: Argument, fields: Mapping[str, str | None], machine: _Machine) -> Argument:
    """The argument with its place. Raises KeyError for a register that is none."""
    registers = machine.registers
    if (constant := fields["constant"]) is not None:
        return sized._replace(value=int(constant, 0))
    if (name := fields["register"]) is not None:
        return sized._replace(where=Where.REG, register=registers[name])
    offset, base = int(fields["offset"] or "0", 0), registers[fields["base"] or ""]
    index = fields.get("index")
    if index is None:
        return sized._replace(where=Where.REG_DEREF, value=offset, register=base)
    scale = int(fields["scale"] or "1")
    if scale not in _SIZES:
        raise ValueError(f"a scale of {scale}; processors have 1, 2, 4 and 8")
    return sized._replace(
        where=Where.SIB, value=offset, register=base, index_register=registers[index], scale=scale
    )
