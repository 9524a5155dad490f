"""Writes and loads the programs for signatures, and puts them where the kernel half jumps."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from purebpf import asm
from purebpf.abi import syscalls
from purebpf.btf.types.kinds import Kind, Struct
from purebpf.loader.load.load import load
from purebpf.tools.trace.capture import Capture, Copy, Framed, Unpacked
from purebpf.tools.trace.code import SLOTS, Again, Layout, program
from purebpf.tools.trace.compat.calls import FIRST_SOCKET_CALL, SOCKET_CALLS
from purebpf.tools.trace.compat.captures import compat_capture_of, unpack_socket_calls
from purebpf.tools.trace.kinds import capture_of

if TYPE_CHECKING:
    from purebpf.btf.types.parse import Btf
    from purebpf.loader.load.object import Object

__all__ = ["SLOTS", "load_programs", "map_spec", "member_offsets", "numbers_of"]

_STACK_POINTERS = {"x86_64": 152}
"""In struct pt_regs, by machines of which the frames of signals are known, too."""

_MAPS = ("tasks", "tasks_by_address", "then", "at_start")


def numbers_of(names: Iterable[str], *, compat: bool = False) -> dict[str, int]:
    """Return the numbers of calls in the native ABI of this machine, or in the ABI of its 32-bit
    programs.

    The result omits calls that the ABI lacks.
    """
    machine = syscalls.machine(os.uname().machine)
    abi = machine.compat if compat else machine.native
    numbers = ((name, syscalls.number(abi, name)) for name in names)
    return {name: number for name, number in numbers if number is not None and number < SLOTS}


def load_programs(
    tracer: Object, names: Iterable[str], string_size: int
) -> AbstractContextManager[Any]:
    """Write and load the programs of these calls, and enter them; they live as long as the result.

    Args:
        tracer: bpf_src/trace.bpf.c.
        names: calls.
        string_size: bytes of strings and buffers.
    """
    wanted = sorted(names)
    captures = {
        number: capture_of(name, string_size) for name, number in numbers_of(wanted).items()
    }
    abi = syscalls.machine(os.uname().machine).compat
    for name, number in numbers_of(wanted, compat=True).items():
        captures[SLOTS + number] = compat_capture_of(name, string_size, abi)
    if abi == "i386" and "socketcall" in wanted:
        captures |= _of_socket_calls(frozenset(wanted), string_size)
    programs = _Programs(_layout(tracer))
    starts = {number: programs.start(capture) for number, capture in captures.items()}
    ends = {number: programs.end(capture) for number, capture in captures.items()}
    maps = {name: tracer.maps[name] for name in _MAPS}
    specs = [map_spec(tracer, name) for name in programs.used(_MAPS)]
    loaded = load(
        asm.build("trace_calls", programs.functions, specs),
        maps={spec.name: maps[spec.name] for spec in specs},
    )
    for name, slots in (("at_start", starts), ("at_end", ends)):
        for number, function in slots.items():
            if function:
                tracer.maps[name][number] = loaded.programs[function]
    return loaded


def _of_socket_calls(wanted: frozenset[str], string_size: int) -> dict[int, Capture]:
    """Return the captures of the calls that socketcall(2) becomes; unwanted calls end in its
    program.
    """
    captures = {SLOTS + (syscalls.number("i386", "socketcall") or 0): unpack_socket_calls(wanted)}
    for number, name in enumerate(SOCKET_CALLS, FIRST_SOCKET_CALL + 1):
        captures[SLOTS + number] = compat_capture_of(name, string_size, "i386")
    return captures


class _Programs:
    """One for each signature, at each end."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._made: dict[tuple[object, ...], asm.Program] = {}

    @property
    def functions(self) -> list[asm.Program]:
        return list(self._made.values())

    def used(self, maps: Iterable[str]) -> list[str]:
        """Return the maps that programs refer to."""
        targets = {ref.target for code in self.functions for ref in code.relocations}
        return [name for name in maps if name in targets]

    def start(self, capture: Capture) -> str:
        """The name of the program for the start of a call; "": it needs none."""
        return self._name(capture.start, (), end=False) if capture.start else ""

    def end(self, capture: Capture) -> str:
        """The name of the program for its end."""
        again = tuple(copy for copy in capture.start if not isinstance(copy, Unpacked | Framed))
        if not (capture.end or again):
            return ""
        return self._name(capture.end, again, end=True, after_success=capture.again)

    def _name(
        self,
        copies: tuple[Copy, ...],
        again: tuple[Copy, ...],
        *,
        end: bool,
        after_success: bool = True,
    ) -> str:
        # types, too: a Text and a Block of the same numbers are equal as tuples
        key = (copies, again, end, after_success, *map(type, copies), *map(type, again))
        if key not in self._made:
            name = f"{'end' if end else 'start'}_{len(self._made)}"
            again_after = Again(again, after_success=after_success)
            self._made[key] = program(name, copies, again_after, self._layout, end=end)
        return self._made[key].name


def map_spec(tracer: Object, name: str) -> asm.MapSpec:
    """A map of the tracer's, as the object that shares it declares it."""
    info = tracer.maps[name].info
    return asm.MapSpec(
        name, info.type, info.key_size, info.value_size, info.max_entries, info.flags
    )


def member_offsets(tracer: Object, *structs: str) -> dict[str, int]:
    """Return the offsets of members of the tracer's structs, in bytes."""
    btf: Btf | None = tracer.maps["events"].btf
    assert btf is not None
    offsets: dict[str, int] = {}
    for name in structs:
        (type_id,) = btf.find(name, Kind.STRUCT)
        declared = btf.type(type_id)
        assert isinstance(declared, Struct)
        offsets |= {member.name: member.bit_offset // 8 for member in declared.members}
    return offsets


def _layout(tracer: Object) -> Layout:
    storage = "task_storage" in tracer.globals and bool(tracer.globals["task_storage"])
    offsets = member_offsets(tracer, "call", "task_state")
    register = _STACK_POINTERS.get(os.uname().machine)
    return Layout.of(offsets, task_storage=storage, stack_pointer=register)
