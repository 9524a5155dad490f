"""`generate`: the program of one block at one attach point."""

from __future__ import annotations

from purebpf.asm import R0, R1, R6, Label, Program
from purebpf.asm.program import Function, MapName
from purebpf.btf.types.kinds import Kind
from purebpf.script.lowering.frame import NeedsScratchError
from purebpf.script.lowering.known_values import KnownValue, find_known_value
from purebpf.script.lowering.layout import EXITED, TARGET_CGROUP, Context
from purebpf.script.lowering.statements import Statements
from purebpf.script.script_error import ScriptError
from purebpf.script.types import I64, room
from purebpf.script.unit import Unit

__all__ = ["generate"]

_EVERY_PROCESS = ("begin", "end", "interval", "self", "bench", "iter")
"""Kinds of blocks whose current task does not matter: purebpf itself runs them."""


def generate(unit: Unit, context: Context) -> tuple[Program, list[Function]]:
    """Return the program of a block, and the functions that it calls.

    It has scratch memory only if its values need some, and then the predicate runs before the
    search for a free slot if it can.

    Raises:
        ScriptError: code that cannot be generated.
    """
    for scratch in ("none", "body", "all"):
        try:
            return _generate(unit, context, scratch)
        except NeedsScratchError:
            continue
    raise AssertionError(unit)


def _generate(unit: Unit, context: Context, scratch: str) -> tuple[Program, list[Function]]:
    code = Program(unit.program_name, unit.point.section)
    generator = Statements(code, unit, context)
    generator.mark_line(unit.probe)
    code.copy(R6, R1)
    plain_end = generator.end
    if unit.point.kind not in _EVERY_PROCESS:
        _leave_for_other_tasks(generator, context, plain_end)
    if unit.point.kind == "iter":
        _refuse_targets(unit, context)
        _leave_at_the_end(generator, context)
    if unit.point.kind in ("interval", "iter"):
        code.map_value(R1, "globals", EXITED)
        code.load(R0, R1, 0, 8)
        code.jump("!=", R0, 0, plain_end)
    if scratch == "all":
        generator.acquire_scratch()
        generator.end = code.label()
    known = 0
    if unit.probe.predicate is not None:
        inside = code.label()
        generator.condition(unit.probe.predicate, inside, generator.end)
        code.place(inside)
        known = _keep_value(generator, unit, context)
    if scratch == "body":
        generator.acquire_scratch()
        generator.end = code.label()
    for slot in unit.slots:
        generator.slots[id(slot)] = generator.take(room(slot.type or I64))
    generator.prepare_callbacks()
    generator.prepare_user_stack()
    generator.statements(unit.probe.body.statements[:known])
    generator.known = None
    generator.statements(unit.probe.body.statements[known:])
    if scratch != "none":
        code.place(generator.end)
        generator.release_scratch()
    code.place(plain_end)
    # after 0, perf and others do not see the event of a tracepoint
    code.move(R0, 1 if unit.point.section.startswith("tracepoint") else 0)
    code.exit()
    code.drop_unreachable()
    return code, generator.functions


def _leave_for_other_tasks(generator: Statements, context: Context, end: Label) -> None:
    """Leave if the current task is none of those that the options choose."""
    code, settings = generator.code, context.settings
    if settings.pid:
        generator.task_number(is_process=True)
        code.jump("!=", R0, settings.pid, end)
    if settings.uid is not None:
        code.call_helper("get_current_uid_gid")
        code.zero_extend(R0)
        code.move(R1, settings.uid)  # a jump would compare a number above 2^31 as negative
        code.jump_register("!=", R0, R1, end)
    if settings.is_in_cgroup:
        code.call_helper("current_task_under_cgroup", MapName(TARGET_CGROUP), 0)
        code.jump("!=", R0, 1, end)


def _refuse_targets(unit: Unit, context: Context) -> None:
    """Refuse options that an iterator cannot follow: its objects are no current task.

    Raises:
        ScriptError: there is such an option.
    """
    if context.settings.uid is None and not context.settings.is_in_cgroup:
        return
    node = unit.probe.points[0]
    raise ScriptError(
        "an iterator visits objects and has no current task, which --cgroup and --uid compare",
        node.start,
        node.end,
        "leave these options out, and compare members of ctx in a predicate",
    )


def _leave_at_the_end(generator: Statements, context: Context) -> None:
    """Leave if there is no object: the kernel runs an iterator once more, after the last one.

    The first member of its context is `meta`, the second one the object.
    """
    btf = context.host.btf()
    name = f"bpf_iter__{generator.unit.point.name.partition(':')[2]}"
    for type_id in btf.find(name, Kind.STRUCT) if btf is not None else ():
        assert btf is not None
        _, first, *_ = btf.type(type_id).members  # type: ignore[union-attr]
        generator.code.load(R0, R6, first.bit_offset // 8, 8)
        generator.code.jump("==", R0, 0, generator.end)


def _keep_value(generator: Statements, unit: Unit, context: Context) -> int:
    """Keep R0, the value of a predicate; return the number of statements that may use it."""
    found = find_known_value(unit.probe, context.maps)
    if found is None:
        return 0
    read, number = found
    assert read.key is not None
    generator.known = KnownValue(read.name, read.key, generator.keep())
    return number
