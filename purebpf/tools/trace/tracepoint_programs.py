"""Tracepoints by name, and a small program for each, which says how long its record is.

The record of a tracepoint is fixed but for arrays and strings behind it, which fields point to. The
program adds up where they end, straight on, and jumps to send_point() of bpf_src/trace.bpf.c.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from purebpf import asm
from purebpf.asm import R0, R1, R2, R8, R9, R10, MapName, Stack
from purebpf.loader.load.load import load
from purebpf.loader.programs.attachments import Attachments
from purebpf.syscall import tracefs
from purebpf.tools.trace.loading import map_spec, member_offsets
from purebpf.tools.trace.selection import UnknownCallError
from purebpf.tools.trace.tracepoint_format import Field, fields_of
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.loader.load.object import Object

__all__ = ["Tracepoint", "attach_tracepoints", "find", "read", "start_tracepoints"]

_MAPS = ("points", "then_point")
_STEPS = {2: "send_stacked_point", 0: "send_point"}
"""enum point_step of bpf_src/trace/records.h: between them, the program that walks stacks."""
_SHORTEST = 8
"""Bytes of a record without fields: what all have."""
_WITHOUT_PROGRAMS = ("ftrace", "syscalls")
"""Groups of which a program sees no record: ftrace's own, and calls, which are shown by name."""


class Tracepoint(NamedTuple):
    """A tracepoint: `sched:sched_switch`, and the fields of its record."""

    name: str
    fields: tuple[Field, ...]


def find(words: Iterable[str], known_names: Iterable[str]) -> list[str]:
    """The tracepoints that words ask for: `sched:*`, behind `!`, those that are not wanted.

    Args:
        words: with a colon each.
        known_names: `category:name` of all.

    Raises:
        UnknownCallError: a word that fits none.
    """
    everything = [name for name in known_names if name.partition(":")[0] not in _WITHOUT_PROGRAMS]
    wanted: dict[str, None] = {}
    for word in words:
        pattern = word.lstrip("!")
        fits = [name for name in everything if fnmatchcase(name, pattern)]
        if not fits:
            raise UnknownCallError(_explain(pattern, everything))
        if word.startswith("!"):
            wanted = {name: None for name in wanted if name not in set(fits)}
        else:
            wanted |= dict.fromkeys(fits)
    return list(wanted)


def _explain(word: str, known_names: Sequence[str]) -> str:
    from difflib import get_close_matches

    if word.partition(":")[0] in _WITHOUT_PROGRAMS:
        return f"{word!r} cannot be traced; name system calls without a group, as in -e openat"
    close = get_close_matches(word, known_names)
    return f"unknown tracepoint {word!r}" + (f" (similar: {', '.join(close)})" if close else "")


def read(words: Iterable[str]) -> tuple[Tracepoint, ...]:
    """The tracepoints of this kernel that words ask for, with their fields.

    Raises:
        UnknownCallError: a word that fits none.
        KernelError, NotSupportedError: tracefs cannot be read.
    """
    wanted = list(words)
    if not wanted:
        return ()
    names = find(wanted, tracefs.tracepoint_names())
    with tracefs.open_tracefs():  # one mount for all, where there is none
        formats = {name: tracefs.tracepoint_format(*name.split(":")) for name in names}
    return tuple(Tracepoint(name, fields_of(text)) for name, text in formats.items())


def attach_tracepoints(
    tracer: Object, tracepoints: Sequence[Tracepoint]
) -> AbstractContextManager[Any]:
    """Write, load and attach the programs, which send nothing until `start_tracepoints()`.

    They run as long as the result is open.

    Args:
        tracer: bpf_src/trace.bpf.c, with its programs `send_point` and, with stacks,
            `send_stacked_point`.
        tracepoints: they have numbers in this order.
    """
    with ExitStack() as stack:
        if tracepoints:
            offsets = member_offsets(tracer, "point")
            programs = [_program(*numbered, offsets) for numbered in enumerate(tracepoints)]
            specs = [map_spec(tracer, name) for name in _MAPS]
            maps = {name: tracer.maps[name] for name in _MAPS}
            loaded = stack.enter_context(load(asm.build("tracepoints", programs, specs), maps=maps))
            links = stack.enter_context(Attachments())
            for program in programs:
                links.own(loaded.programs[program.name].attach())
        return stack.pop_all()


def start_tracepoints(tracer: Object) -> None:
    """Let the programs of tracepoints send records: once stacks are walked, if they are."""
    for step, name in _STEPS.items():
        if name in tracer.programs:
            tracer.maps["then_point"][step] = tracer.programs[name]


def _program(number: int, tracepoint: Tracepoint, offsets: Mapping[str, int]) -> asm.Program:
    """R8: bytes of the record, R9: the context."""
    code = asm.Program(f"point_{number}", f"tracepoint/{tracepoint.name.replace(':', '/')}")
    out = code.label()
    code.comment(tracepoint.name)
    code.copy(R9, R1)
    ends = [field.offset + field.size for field in tracepoint.fields]
    code.move(R8, max(ends, default=_SHORTEST))
    for field in tracepoint.fields:
        if not field.dynamic:
            continue
        shorter = code.label()
        code.load(R1, R9, field.offset, 4)
        code.copy(R2, R1)
        code.alu(">>=", R2, 16)
        code.alu("&=", R1, 0xFFFF)
        code.alu_register("+=", R1, R2)
        if field.dynamic == "rel":
            code.alu("+=", R1, field.offset + 4)
        code.jump_register("<=", R1, R8, shorter)
        code.copy(R8, R1)
        code.place(shorter)
    code.store_constant(R10, -4, 0, 4)
    code.call_helper("map_lookup_elem", MapName("points"), Stack(-4))
    code.jump("==", R0, 0, out)
    code.store_constant(R0, offsets["number"], number, 4)
    code.store(R0, offsets["size"], R8, 4)
    code.call_helper("tail_call", R9, MapName("then_point"), 0)
    code.place(out)
    code.move(R0, 1)  # after 0, perf and others do not see the event
    code.exit()
    return code
