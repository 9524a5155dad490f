"""Linking: a program and every function it may call or pass on, as one run of instructions.

The kernel does not link: each program is loaded with its own copy of the subprograms it needs, one
after the other, and calls are distances between them. A subprogram is placed when its first caller
is read, followed by the functions that it calls (the order of libbpf's bpf_object__reloc_code),
once however often it is called, itself included.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol

from purebpf.abi.instruction import CALL, INSN_SIZE, PSEUDO_CALL, PSEUDO_FUNC
from purebpf.errors import FormatError, LinkError
from purebpf.relocate.code import Code
from purebpf.relocate.linked_program import LinkedProgram, Patched, Reference, func_info, line_info
from purebpf.spec import FunctionSpec, ObjectSpec, Relocation, RelocationKind

if TYPE_CHECKING:
    from purebpf.btf.core.matching import CoreMatcher, Targets
    from purebpf.relocate.externs import Externs


class EarlierLinks(Protocol):
    """Remembers the code of functions after CO-RE."""

    def patched(self, function: FunctionSpec) -> Patched | None:
        """Return it; None: it is not known."""

    def note_patched(self, function: FunctionSpec, patched: Patched) -> None:
        """Remember it."""


_EXCEPTION_CALLBACK = "exception_callback:"

POISONED_MAP = 2001000000
"""The helper number that a use of the first map becomes when that is left out, as in libbpf."""

_OF_FUNCTIONS = (RelocationKind.CALL, RelocationKind.FUNCTION)
_OF_NAMES = (RelocationKind.EXTERN, RelocationKind.JUMP_TABLE)


class Linker:
    """Links the programs of one object.

    Each function is relocated against the kernel's types once, and all share the answers that CO-RE
    found for the object's types.

    Args:
        spec: the object.
        targets: BTF to match CO-RE relocations against, vmlinux first. A callable or generator is
            called only when a required function has such relocations.
        externs: the kernel's answers for the object's `__ksym` externs; called for each extern that
            a linked program refers to. By default, none exists.
        earlier: the results of CO-RE from earlier links of these functions against `targets`.
    """

    def __init__(
        self,
        spec: ObjectSpec,
        targets: Targets,
        externs: Externs = lambda _extern: None,
        earlier: EarlierLinks | None = None,
    ) -> None:
        self._spec = spec
        self._earlier = earlier
        self._externs = externs
        self._targets = targets
        self._patched: dict[str, Patched] = {}
        self._throws = spec.btf is not None and _EXCEPTION_CALLBACK.encode() in spec.btf.data

    def link(self, program: str) -> LinkedProgram:
        """Link one of `spec.programs`.

        Raises:
            KeyError: no program has this name.
            LinkError: a map or function that the object does not define; a kernel symbol that
                the kernel does not have, and that is not weak.
            FormatError: a relocation that does not fit its instruction or its types.
            CoreRelocationError: a CO-RE relocation without a single answer.
        """
        spec = self._spec
        starts = self._place(program, spec.programs[program].function)
        patched = {key: self._patch(key) for key in starts}
        joined = b"".join(function.code for function in patched.values())
        poisoned = {
            starts[key] + slot: why
            for key, function in patched.items()
            for slot, why in function.poisoned.items()
        }
        code, references = self._resolve(joined, starts, poisoned)
        placed = [(start, spec.functions[key]) for key, start in starts.items()]
        return LinkedProgram(
            name=program,
            source=spec.source,
            byteorder=spec.byteorder,
            code=code,
            references=references,
            functions=starts,
            func_info=func_info(placed, spec.byteorder),
            line_info=line_info(placed, spec.byteorder),
            poisoned=poisoned,
            jump_tables={
                f"{key}:{table}": tuple(start + place // INSN_SIZE for place in places)
                for key, start in starts.items()
                for table, places in spec.functions[key].jump_tables.items()
            },
        )

    def _place(self, program: str, entry: str) -> dict[str, int]:
        """Return the start of each required function, in instructions, in the order of their
        places.
        """
        functions = self._spec.functions
        starts: dict[str, int] = {}
        end = 0
        first = [(program, entry)]
        if self._throws and entry in functions:
            first += self._exception_callbacks(entry)
        unread = [iter(first)]
        while unread:
            caller, callee = next(unread[-1], ("", ""))
            if not callee:
                unread.pop()
            elif callee not in starts:
                if callee not in functions:
                    problem = f"{caller} needs this function, which is not defined"
                    raise LinkError(self._spec.source, callee, problem)
                starts[callee] = end
                end += len(functions[callee].code) // INSN_SIZE
                unread.append(self._find_callees(callee))
        return starts

    def _find_callees(self, caller: str) -> Iterator[tuple[str, str]]:
        """(the caller, a function it calls or passes on), in the order of instructions."""
        for relocation in sorted(
            self._spec.functions[caller].relocations, key=attrgetter("offset")
        ):
            if relocation.kind in _OF_FUNCTIONS:
                yield caller, relocation.target

    def _exception_callbacks(self, entry: str) -> Iterator[tuple[str, str]]:
        """Return (the program, the callback it calls when it throws): only a tag refers to it."""
        from purebpf.btf.types.kinds import DeclTag

        btf, type_id = self._spec.btf, self._spec.functions[entry].type_id
        if btf is None or not type_id:
            return
        for tag_id in self._tags:
            tag = btf.type(tag_id)
            assert isinstance(tag, DeclTag)
            if tag.type_id == type_id and tag.name.startswith(_EXCEPTION_CALLBACK):
                yield entry, tag.name.removeprefix(_EXCEPTION_CALLBACK)

    @cached_property
    def _tags(self) -> list[int]:
        """The ids of the object's declaration tags."""
        from purebpf.btf.types.kinds import Kind
        from purebpf.btf.types.parse import ids_of

        btf = self._spec.btf
        assert btf is not None  # asked for by a function with a type
        return [*ids_of(btf, Kind.DECL_TAG)]

    @cached_property
    def _matcher(self) -> CoreMatcher:
        """Made for the first function that has CO-RE relocations."""
        from purebpf.btf.core.matching import CoreMatcher

        assert self._spec.btf is not None  # the relocations refer to its types
        return CoreMatcher(self._spec.btf, self._targets)

    def _patch(self, key: str) -> Patched:
        """A function's code after CO-RE."""
        if key not in self._patched:
            function = self._spec.functions[key]
            if function.core_relocations and self._spec.btf is None:
                raise self._error(function, "has CO-RE relocations, but the object has no BTF")
            if function.core_relocations or len(function.code) % INSN_SIZE:
                self._patched[key] = self._apply_core(function)
            else:
                self._patched[key] = Patched(function.code, {})
        return self._patched[key]

    def _apply_core(self, function: FunctionSpec) -> Patched:
        if self._earlier is not None and (patched := self._earlier.patched(function)) is not None:
            return patched
        from purebpf.relocate.core import apply_core

        results = [self._matcher.match(relocation) for relocation in function.core_relocations]
        patched = apply_core(
            function, results, byteorder=self._spec.byteorder, source=self._spec.source
        )
        if self._earlier is not None:
            self._earlier.note_patched(function, patched)
        return patched

    def _error(self, function: FunctionSpec, problem: str) -> FormatError:
        return FormatError(self._spec.source, f"function {function.name}", problem)

    def _resolve(
        self, joined: bytes, starts: dict[str, int], poisoned: dict[int, str]
    ) -> tuple[bytes, tuple[Reference, ...]]:
        """The code with distances to functions and kernel symbols; the references to maps."""
        code = Code(joined, self._spec.byteorder)
        maps = self._spec.maps
        references = []
        for key, start in starts.items():
            function = self._spec.functions[key]
            for relocation in function.relocations:
                offset, kind, target, addend = relocation
                if offset % INSN_SIZE or not 0 <= offset < len(function.code):
                    raise self._error(function, f"{relocation} is not at an instruction")
                slot = start + offset // INSN_SIZE
                if kind in _OF_FUNCTIONS:
                    self._point(code, slot, starts[target], function, relocation)
                    continue
                defined = {
                    RelocationKind.EXTERN: self._spec.externs,
                    RelocationKind.JUMP_TABLE: function.jump_tables,
                }.get(kind, maps)
                if target not in defined:
                    raise self._undefined(function, relocation)
                if kind is RelocationKind.EXTERN:
                    if why := self._write_extern(code, slot, function, relocation):
                        poisoned[slot] = why
                    continue
                if not code.is_load64(slot):
                    raise self._error(function, f"{relocation} is not for an ld_imm64")
                if kind is RelocationKind.JUMP_TABLE:
                    references.append(Reference(slot, kind, f"{key}:{target}", addend))
                elif maps[target].autocreate:
                    if kind is RelocationKind.DATA:
                        addend += maps[target].contents_offset
                    references.append(Reference(slot, kind, target, addend))
                else:
                    why = self._poison_map(code, slot, target)
                    poisoned |= dict.fromkeys((slot, slot + 1), why)
        return bytes(code), tuple(references)

    def _undefined(self, function: FunctionSpec, relocation: Relocation) -> LinkError:
        kind = relocation.kind.value if relocation.kind in _OF_NAMES else "map"
        problem = f"{function.name} needs this {kind}, which is not defined"
        return LinkError(self._spec.source, relocation.target, problem)

    def _poison_map(self, code: Code, slot: int, name: str) -> str:
        """Replace a reference to a map that is not created; why."""
        number = POISONED_MAP + list(self._spec.maps).index(name)
        for word in (slot, slot + 1):
            code.replace_by_call(word, number)
        return f"it uses map {name!r}, which was left out (autocreate is False)"

    def _write_extern(
        self, code: Code, slot: int, function: FunctionSpec, relocation: Relocation
    ) -> str:
        """Write the kernel's value of an extern; return the reason why it is poisoned instead,
        or "".
        """
        from purebpf.relocate.externs import write_extern

        extern = self._spec.externs[relocation.target]
        resolved = self._externs(extern)
        if resolved is None and not extern.weak:
            problem = f"{function.name} needs it, this kernel has no such symbol, and it is not"
            raise LinkError(self._spec.source, extern.name, f"{problem} declared __weak")
        try:
            return write_extern(code, slot, extern, resolved)
        except ValueError as error:
            raise self._error(function, f"{relocation}: {error}") from None

    def _point(
        self, code: Code, slot: int, target: int, function: FunctionSpec, relocation: Relocation
    ) -> None:
        """Make a call, or an ld_imm64 of a callback, lead to the instruction `target`."""
        if relocation.kind is RelocationKind.FUNCTION:
            if not code.is_load64(slot):
                raise self._error(function, f"{relocation} is not for an ld_imm64")
            code.set_source(slot, PSEUDO_FUNC)
            code.set_immediate(slot + 1, 0)
        elif code.opcode(slot) != CALL or code.source(slot) != PSEUDO_CALL:
            raise self._error(function, f"{relocation} is not for a call")
        code.set_immediate(slot, target - slot - 1)
