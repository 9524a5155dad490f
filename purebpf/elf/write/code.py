"""The sections of code of an object file: functions side by side, with their references."""

from __future__ import annotations

from collections.abc import Iterator

from purebpf.abi.instruction import INSN_SIZE
from purebpf.errors import NotSupportedError
from purebpf.spec import (
    FunctionSpec,
    ObjectSpec,
    Relocation,
    RelocationKind,
    reachable_functions,
)

__all__ = ["CodeSection", "group_functions"]

_TEXT = ".text"
_CALL = 0x85
_PSEUDO_CALL = 1


class CodeSection:
    """A section of code.

    Attributes:
        name: of the section.
        code: its instructions.
        functions: each function and its offset in bytes.
        places: the offset of each function, by its key in the spec.
        relocations: each reference and the offset of its instruction.
    """

    def __init__(self, name: str, byteorder: str) -> None:
        self.name = name
        self.code = bytearray()
        self.functions: list[tuple[FunctionSpec, int]] = []
        self.places: dict[str, int] = {}
        self.relocations: list[tuple[int, Relocation]] = []
        self._byteorder = byteorder

    def add(self, key: str, function: FunctionSpec) -> None:
        """Append a function."""
        start = self.places[key] = len(self.code)
        self.functions.append((function, start))
        self.relocations += ((start + each.offset, each) for each in function.relocations)
        self.code += function.code

    def is_call(self, place: int) -> bool:
        """Return True if the instruction at an offset is a call."""
        return self.code[place] == _CALL

    def function_info(self) -> Iterator[tuple[int, int]]:
        """Yield the offset and the type of each function that has one."""
        for function, start in self.functions:
            if function.type_id:
                yield start, function.type_id

    def resolve(self, sections: dict[str, CodeSection]) -> None:
        """Write the part of each reference that is in its instruction.

        Args:
            sections: the section of each function, by its key.
        """
        for place, relocation in self.relocations:
            immediate = 0
            if relocation.kind is RelocationKind.CALL:
                immediate = self._distance(place, relocation.target, sections)
            elif relocation.kind is RelocationKind.FUNCTION:
                immediate = sections[relocation.target].places[relocation.target]
            elif relocation.kind is RelocationKind.DATA and relocation.target != ".kconfig":
                immediate = relocation.addend
            elif self.is_call(place):  # of a function of the kernel
                immediate = -1
            self._set(place, immediate, _PSEUDO_CALL if self.is_call(place) else 0)

    def _distance(self, place: int, key: str, sections: dict[str, CodeSection]) -> int:
        """In instructions, from the next one: within this section, or from the other's start."""
        target = sections[key].places[key] // INSN_SIZE
        if sections[key] is self:
            target -= place // INSN_SIZE
        return target - 1

    def _set(self, place: int, immediate: int, source: int) -> None:
        registers = self.code[place + 1]
        little = self._byteorder == "little"
        self.code[place + 1] = registers & 15 | source << 4 if little else registers & 0xF0 | source
        self.code[place + 4 : place + 8] = immediate.to_bytes(
            4, "little" if little else "big", signed=True
        )


def group_functions(spec: ObjectSpec) -> list[CodeSection]:
    """Return the sections of an object's code: of programs, and `.text` of all that they call.

    Raises:
        NotSupportedError: a function has jump tables.
    """
    programs = {program.function: program for program in spec.programs.values()}
    sections: dict[str, CodeSection] = {}
    by_key: dict[str, CodeSection] = {}
    for key in reachable_functions(spec, programs):
        function = spec.functions[key]
        if function.jump_tables:
            raise NotSupportedError(f"writing {spec.source}", f"{function.name} has jump tables")
        program = programs.get(key)
        name = _TEXT if program is None else _section_of(program.section, program.autoload)
        section = sections.setdefault(name, CodeSection(name, spec.byteorder))
        section.add(key, function)
        by_key[key] = section
    for section in sections.values():
        section.resolve(by_key)
    return list(sections.values())


def _section_of(section: str, autoload: bool) -> str:  # noqa: FBT001 - of a program
    name = section.removeprefix("?")
    return name if autoload else f"?{name}"
