"""The declarations that a function of the kernel can see, from BTF."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from purebpf.dataflow.btf_types import BtfTypes, Prototype
from purebpf.dataflow.code import Code
from purebpf.dataflow.flow import Pointer, State, pointer_of
from purebpf.dataflow.later_uses import ARGUMENTS, Functions, later_uses
from purebpf.dataflow.layout import is_record
from purebpf.dataflow.types import Type, byte_size

__all__ = ["KernelScope", "find_per_cpu"]

_WORD = 8
_TOP = (1 << 64) - 1
_HIGH = 1 << 63
_LEAST = 8
"""Distinct addresses behind `gs:` that a decision needs."""
_HITS = 0.5
"""The least share of them that are the start of a variable; others are members, or no code."""
_PAGE = 4096
"""The section is aligned to pages (include/asm-generic/vmlinux.lds.h, PERCPU_SECTION)."""
_GS = re.compile(
    rb"\x65[\x40-\x4f]?[\x8b\x89\x03\x3b\x39]"
    rb"(?:[\x05\x0d\x15\x1d\x25\x2d\x35\x3d]|([\x04\x0c\x14\x1c\x24\x2c\x34\x3c]\x25))(....)",
    re.DOTALL,
)
"""Instructions with a constant address behind `gs:`, relative to RIP or absolute (in group 1)."""


def find_per_cpu(types: BtfTypes, code: bytes, address: int) -> int | None:
    """Return the address of the section of per-CPU variables; None: not known.

    kallsyms has no data symbols on many kernels, and the section starts at 0 up to Linux 6.14. It
    is where most constants behind `gs:` are the start of a variable.

    Args:
        types: of the kernel.
        code: of some functions.
        address: of the code.
    """
    used = set(_constants(code, address))
    starts = [variable.offset for variable in types.per_cpu]
    if len(used) < _LEAST or not starts:
        return None
    votes = Counter(
        (constant - start) & _TOP
        for constant in used
        for start in starts
        if not (constant - start) % _PAGE
    )
    if not votes:
        return None
    (base, hits), *others = votes.most_common(2)
    is_alone = not others or others[0][1] * 2 < hits
    return base if is_alone and hits >= _HITS * len(used) else None


def _constants(code: bytes, address: int) -> Iterator[int]:
    for found in _GS.finditer(code):
        constant = int.from_bytes(found[2], "little", signed=True)
        yield (constant if found[1] else address + found.end() + constant) & _TOP


class KernelScope:
    """The parameters, results and per-CPU variables; a `purebpf.dataflow.flow.Scope`.

    Args:
        types: of the kernel.
        code: of the function.
        own: the prototype of the function; None: unknown.
        functions: that it calls.
        per_cpu: the address of the section of per-CPU variables; None: unknown.
    """

    follows_elements = unwinds = False

    def __init__(
        self,
        types: BtfTypes,
        code: Code,
        own: Prototype | None,
        functions: Functions,
        per_cpu: int | None,
    ) -> None:
        self._types, self._functions, self._per_cpu = types, functions, per_cpu
        self._own = own
        result = own.result if own is not None else None
        uses = later_uses(code, functions, result, types.holders)
        self._uses = {one.ip: each for one, each in zip(code.instructions, uses, strict=True)}

    def entered(self) -> Mapping[int, Pointer]:
        """Return the pointers among the function's parameters."""
        found: dict[int, Pointer] = {}
        free = list(ARGUMENTS)
        for of in self._own.parameters if self._own is not None else ():
            taken = max(1, -(-byte_size(of) // _WORD))
            if is_record(of) and taken > 2:
                continue  # on the stack
            if taken > len(free):
                continue
            registers, free = free[:taken], free[taken:]
            pointer = pointer_of(of)
            if pointer is not None:
                found[registers[0]] = pointer
        return found

    def used(self, address: int) -> Mapping[int, Pointer]:
        """Return the pointers in registers before an instruction, by their later use."""
        return self._uses.get(address, {})

    def declared(self, _address: int) -> Mapping[int, Pointer]:
        """Return nothing: BTF does not describe local variables."""
        return {}

    def on_stack(self, _at: int, _offset: int, _state: State) -> tuple[Type | None, int] | None:
        """Return None: BTF does not describe local variables."""
        return None

    def at(self, _address: int) -> tuple[Type | None, int] | None:
        """Return None: BTF has per-CPU variables only."""
        return None

    def returns(self, address: int) -> Type | None:
        """Return the type that the function at an address returns; None: unknown, or void."""
        called = self._functions.prototype(address)
        return None if called is None else called.result

    def is_offset_of_cpu(self, address: int) -> bool:
        """Return True for `this_cpu_off`, the distance of this CPU's variables."""
        if self._per_cpu is None:
            return False
        variable = self._types.per_cpu_at((address - self._per_cpu) & _TOP)
        return variable is not None and variable.name == "this_cpu_off"

    def jumps_to(self, address: int) -> int | None:
        """Return the register that a retpoline jumps to; None: it is none."""
        return self._functions.jumps_to(address)

    def per_cpu(self, address: int, *, is_plain: bool) -> tuple[Type | None, int] | None:
        """Return the type of the per-CPU variable at an address, and the offset in it.

        Args:
            address: in the section, as instructions have it.
            is_plain: it is not behind `gs:`. A low address may be any number then.
        """
        address &= _TOP
        if self._per_cpu is None or (is_plain and address < _HIGH):
            return None
        offset = (address - self._per_cpu) & _TOP
        variable = self._types.per_cpu_at(offset)
        return None if variable is None else (variable.type, offset - variable.offset)
