"""A linked program: everything BPF_PROG_LOAD wants but the numbers of the maps' descriptors.

Two tables tell the kernel about its functions and its source lines. The kernel takes a table that
covers every function, in order, or none at all. In the file offsets are bytes, for the kernel they
are instructions.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from purebpf.abi.instruction import INSN_SIZE, PSEUDO_MAP_FD, PSEUDO_MAP_VALUE
from purebpf.errors import LinkError
from purebpf.relocate.code import Code
from purebpf.spec import FunctionSpec, RelocationKind
from purebpf.tuples import NamedTuple

Placed = Iterable[tuple[int, FunctionSpec]]
"""Functions with the instruction each starts at, ascending."""

FUNC_INFO_SIZE = 8
"""sizeof(struct bpf_func_info): instruction, type id."""

LINE_INFO_SIZE = 16
"""sizeof(struct bpf_line_info): instruction, offsets of file name and line, line and column."""


class Reference(NamedTuple):
    """An ld_imm64 that needs a map.

    `slot` counts instructions. A MAP is referred to as a whole; of DATA, the ld_imm64 is the
    address of the byte `offset` of its (only) value. `map` may also be a JUMP_TABLE.
    """

    slot: int
    kind: RelocationKind
    map: str
    offset: int = 0


class LinkedProgram(NamedTuple):
    """A program and its subprograms in one piece.

    Attributes:
        name: the program.
        source: the object it is from.
        byteorder: "little" or "big".
        code: the instructions, with map references still empty.
        references: those map references, by slot.
        functions: where each function starts, in instructions, in the order of their places.
        func_info: an array of struct bpf_func_info, or b"" when a function has no BTF.
        line_info: an array of struct bpf_line_info, or b"" when a function has no lines.
        poisoned: by slot, why an instruction was replaced by a call of a function that does not
            exist (helper 195896080): this kernel lacks the thing that the load depends on.
        jump_tables: by `function:table`, the instructions that the table's entries lead to.
    """

    name: str
    source: str
    byteorder: str
    code: bytes
    references: tuple[Reference, ...]
    functions: Mapping[str, int]
    func_info: bytes
    line_info: bytes
    poisoned: Mapping[int, str]
    jump_tables: Mapping[str, tuple[int, ...]] = MappingProxyType({})

    def __repr__(self) -> str:
        return f"<LinkedProgram {self.name}: {len(self.code) // 8} instructions>"

    @property
    def maps(self) -> frozenset[str]:
        """The names of the maps it needs."""
        return frozenset(reference.map for reference in self.references) - self.jump_tables.keys()

    @property
    def digest(self) -> bytes:
        """The SHA-256 of the instructions without the numbers of maps, as the kernel computes it.

        Its first 8 bytes are the program's tag (Linux 6.18, commit 603b44162325, "bpf: Update the
        bpf_prog_calc_tag to use SHA256"; before, tags are of SHA-1).
        Source: bpf_prog_calc_tag in kernel/bpf/core.c.
        """
        from hashlib import sha256

        unplaced = self._replace(references=tuple(r._replace(offset=0) for r in self.references))
        return sha256(unplaced.bind({reference.map: 0 for reference in self.references})).digest()

    def bind(self, map_fds: Mapping[str, int]) -> bytes:
        """The final instructions, given the descriptor of each map and jump table by name.

        Raises:
            LinkError: a map that is not among `map_fds`.
        """
        code = Code(self.code, self.byteorder)
        for slot, kind, name, offset in self.references:
            if name not in map_fds:
                raise LinkError(self.source, name, f"program {self.name} needs this map")
            is_map = kind is RelocationKind.MAP
            pseudo = PSEUDO_MAP_FD if is_map else PSEUDO_MAP_VALUE
            code.set_pseudo64(slot, pseudo, map_fds[name], offset)
        return bytes(code)


class Patched(NamedTuple):
    """A function's code after CO-RE, and why each poisoned slot is poisoned."""

    code: bytes
    poisoned: dict[int, str]


def func_info(functions: Placed, byteorder: str) -> bytes:
    """An array of struct bpf_func_info; b"" when a function has no BTF FUNC."""
    record = struct.Struct("<II" if byteorder == "little" else ">II")
    records = []
    for start, function in functions:
        if not function.type_id:
            return b""
        records.append(record.pack(start, function.type_id))
    return b"".join(records)


def line_info(functions: Placed, byteorder: str) -> bytes:
    """An array of struct bpf_line_info; b"" when a function's first instruction has no line."""
    record = struct.Struct("<IIII" if byteorder == "little" else ">IIII")
    records = []
    for start, function in functions:
        if not function.line_info or function.line_info[0].offset:
            return b""
        records += [
            record.pack(start + line.offset // INSN_SIZE, *line[1:]) for line in function.line_info
        ]
    return b"".join(records)
