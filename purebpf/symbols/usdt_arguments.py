"""The places of a USDT probe's arguments: the notes' text, as structured data.

`-4@%esi` is a signed 4-byte value in a register, `8@$-1` a constant, `2@-20(%rbp)` memory at a
register plus an offset, `4@8(%rdx,%rcx,4)` an array element. The syntax is the assembler's, so it
depends on the machine. Registers are byte offsets into the kernel's struct pt_regs (on aarch64
struct user_pt_regs), as BPF programs read them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from purebpf.enums import IntEnum
from purebpf.late_pattern import compile_later
from purebpf.tuples import NamedTuple

__all__ = [
    "MAX_ARGUMENTS",
    "Argument",
    "UnknownArgument",
    "Where",
    "parse_arguments",
    "with_addresses",
]

MAX_ARGUMENTS = 12
"""What bpf/usdt.bpf.h has room for."""


class Where(IntEnum):
    """The kind of place: enum __bpf_usdt_arg_type of bpf/usdt.bpf.h."""

    CONST = 0
    REG = 1
    REG_DEREF = 2
    SIB = 3
    UNKNOWN = 127
    """No kind of the header: reading it is an error (EINVAL) in the program, and gives 0."""


class Argument(NamedTuple):
    """One argument.

    Attributes:
        size: 1, 2, 4 or 8 bytes.
        signed: whether to extend its sign.
        where: the kind of place.
        value: the constant, or the offset from the address that is in the register.
        register: offset of the register in struct pt_regs.
        index_register: offset of the index register (SIB).
        scale: the factor of the index: 1, 2, 4 or 8 (SIB).
    """

    size: int
    signed: bool
    where: Where
    value: int = 0
    register: int = 0
    index_register: int = 0
    scale: int = 1


class UnknownArgument(NamedTuple):
    """An argument in a place that cannot be described: its text, and the reason."""

    text: str
    problem: str


def _x86_registers() -> dict[str, int]:
    offsets: dict[str, int] = {}
    for letter, offset in (("a", 80), ("b", 40), ("c", 88), ("d", 96)):
        names = (f"r{letter}x", f"e{letter}x", f"{letter}x", f"{letter}l")
        offsets |= dict.fromkeys(names, offset)
        offsets[f"{letter}h"] = offset + 1  # the second byte of the same register
    for stem, offset in (("si", 104), ("di", 112), ("bp", 32), ("sp", 152)):
        offsets |= dict.fromkeys((f"r{stem}", f"e{stem}", stem, f"{stem}l"), offset)
    for number, offset in zip(range(8, 16), (72, 64, 56, 48, 24, 16, 8, 0), strict=True):
        offsets |= dict.fromkeys((f"r{number}{width}" for width in ("", "d", "w", "b")), offset)
    return offsets | dict.fromkeys(("rip", "eip"), 128)


_X86_64 = _x86_registers()
_AARCH64 = {f"{width}{number}": 8 * number for number in range(31) for width in "xw"} | {"sp": 248}

_SIZED = compile_later(r"\s*([+-]?\d+)\s*@\s*")
_NUMBER = r"[+-]?(?:0[xX][0-9a-fA-F]+|\d+)"
_SIGNED = r"[+-](?:0[xX][0-9a-fA-F]+|\d+)"
_X86_FORMS = compile_later(
    rf"""
      \$(?P<constant>{_NUMBER})
    | %(?P<register>\w+)
    | (?P<offset>{_NUMBER})?\s*
      \(\s*%(?P<base>\w+)\s*(?:,\s*%(?P<index>\w+)\s*(?:,\s*(?P<scale>\d+)\s*)?)?\)
    """,
    re.VERBOSE,
)
_AARCH64_FORMS = compile_later(
    rf"""
      \[\s*(?P<base>[a-z]\w*)\s*(?:,\s*(?P<offset>{_NUMBER})\s*)?\]
    | (?P<constant>{_NUMBER})
    | (?P<register>[a-z]\w*)
    """,
    re.VERBOSE,
)
_BETWEEN = compile_later(r"\s+(?=[+-]?\d+\w?\s*@)")
"""Before each argument but the first: a place may have spaces of its own."""
_RELATIVE = compile_later(
    rf"(?<=@)\s*(?:(?P<before>[+-]?(?:0[xX][0-9a-fA-F]+|\d+))\+)?"
    rf"(?P<symbol>[A-Za-z_.$][\w.$]*)(?P<addend>{_SIGNED})?\((?:%rip|(?=,))"
)
"""`total+8(%rip)`, or `8+total(%rip)` as gcc writes it in a PIE, and `table(,%rax,4)` elsewhere."""
_SIZES = (1, 2, 4, 8)


class _Machine(NamedTuple):
    forms: re.Pattern[str]
    registers: Mapping[str, int]


_MACHINES: Mapping[int, _Machine] = {
    62: _Machine(_X86_FORMS, _X86_64),
    183: _Machine(_AARCH64_FORMS, _AARCH64),
}
"""By e_machine of ELF."""


def parse_arguments(text: str, machine: int) -> tuple[Argument | UnknownArgument, ...]:
    """Return the arguments of a probe in a file for `machine` (e_machine).

    An argument that is none of the forms above (a vector register, a thread's own variable) is an
    UnknownArgument: the others can be read all the same.

    Raises:
        ValueError: more than 12 arguments, or a machine with unknown registers.
    """
    if machine not in _MACHINES:
        raise ValueError(f"unknown registers: ELF machine {machine}")
    texts = _BETWEEN.split(text.strip()) if text.strip() else []
    if len(texts) > MAX_ARGUMENTS:
        raise ValueError(f"{len(texts)} arguments; bpf/usdt.bpf.h has room for {MAX_ARGUMENTS}")
    return tuple(_argument(part, _MACHINES[machine]) for part in texts)


def _argument(text: str, machine: _Machine) -> Argument | UnknownArgument:
    sized = _SIZED.match(text)
    form = machine.forms.fullmatch(text, sized.end()) if sized else None
    if sized is None or form is None:
        return UnknownArgument(text, "unknown way to say where a value is")
    size = int(sized[1])
    if abs(size) not in _SIZES:
        return UnknownArgument(text, f"a value of {abs(size)} bytes")
    try:
        return _place(Argument(abs(size), size < 0, Where.CONST), form.groupdict(), machine)
    except KeyError as error:
        return UnknownArgument(text, f"unknown register {error.args[0]!r}")
    except ValueError as error:
        return UnknownArgument(text, str(error))


def with_addresses(text: str, address: int, find: Callable[[str], int | None]) -> str:
    """Return the arguments of the probe at `address` with numbers in place of variables' names.

    `-4@total+8(%rip)` is a value in a variable of the file: `-4@8192(%rip)` says how far from the
    probe it is. Both addresses are virtual offsets of one file, so the distance holds wherever the
    file is loaded. `4@table(,%rax,4)` is an element of an array in a program that is not moved. A
    name that `find` does not have stays.
    """

    def replace(place: re.Match[str]) -> str:
        target = find(place["symbol"])
        if target is None:
            return place[0]
        added = int(place["before"] or "0", 0) + int(place["addend"] or "0", 0)
        return f"{target + added - address}(%rip"

    return _RELATIVE.sub(replace, text)


def _as_sized(value: int, sized: Argument) -> int:
    """A constant as a program reads it: `1@$-56`, which compilers write for (char)200, is 200."""
    if sized.size == _SIZES[-1]:
        return value
    span = 1 << 8 * sized.size
    value %= span
    return value - span if sized.signed and value >= span // 2 else value


def _place(sized: Argument, fields: Mapping[str, str | None], machine: _Machine) -> Argument:
    """The argument with its place. Raises KeyError for a register that is none."""
    registers = machine.registers
    if (constant := fields["constant"]) is not None:
        return sized._replace(value=_as_sized(int(constant, 0), sized))
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
