"""Tracepoints of all system calls, attached without the record that perf makes for each event.

Programs of `tracepoint:raw_syscalls:*` get their arguments from a raw tracepoint instead, if the
block needs nothing that only the record has. An event costs the traced program a third less then.
Kernel stacks begin elsewhere in a raw tracepoint, so that blocks with stacks keep the record.
"""

from __future__ import annotations

from collections.abc import Mapping

from purebpf.script import tree
from purebpf.script.macros import Macros
from purebpf.script.point import Point
from purebpf.script.tracepoint_fields import RecordField
from purebpf.script.types import I64

__all__ = ["direct_point"]

_FIELDS: Mapping[str, tuple[str, dict[str, RecordField]]] = {
    "tracepoint:raw_syscalls:sys_enter": ("raw_tp/sys_enter", {"id": RecordField(8, I64)}),
    "tracepoint:raw_syscalls:sys_exit": ("raw_tp/sys_exit", {"ret": RecordField(8, I64)}),
}
"""The second arguments of the raw tracepoints (include/trace/events/syscalls.h)."""
_BUILTINS = frozenset({
    "pid", "tid", "initial pid", "initial tid", "uid", "gid", "cpu", "comm", "nsecs", "elapsed",
    "rand", "cgroup", "numaid", "jiffies", "ncpus", "cpid", "has_cpid", "curtask", "ppid", "pcomm",
    "leader_tid", "leader_comm", "username", "probe", "probetype",
})  # fmt: skip
_FUNCTIONS = frozenset({
    "avg", "buf", "clear", "count", "delete", "exit", "has_key", "hist", "len", "lhist", "max",
    "min", "nsecs", "print", "printf", "stats", "str", "strftime", "strncmp", "sum",
    "syscall_name", "time", "tseries", "zero",
})  # fmt: skip


def direct_point(
    point: Point, probe: tree.Probe, macros: Macros
) -> tuple[Point, dict[str, RecordField]] | None:
    """Return a raw tracepoint in the place of a tracepoint, and its fields; None if it must stay.

    The name of the point stays as the script has it.
    """
    if point.name not in _FIELDS:
        return None
    section, fields = _FIELDS[point.name]
    arguments = 0
    for node in tree.walk(probe):
        match node:
            case tree.Field(base=tree.Name(name="args"), name=name):
                if name not in fields:
                    return None
                arguments += 1
            case tree.Name(name="args"):
                arguments -= 1
            case tree.Name(name=name) if name not in _BUILTINS or name in macros:
                return None
            case tree.Call(name=name) if name not in _FUNCTIONS or name in macros:
                return None
            case tree.TypeName(of=type_of) if type_of is not None:
                return None
    if arguments:  # the whole record, as in print(args)
        return None
    return point._replace(section=section), dict(fields)
