"""`Unit`: one action block at one attach point."""

from __future__ import annotations

from purebpf.script import tree
from purebpf.script.point import Point
from purebpf.script.tracepoint_fields import RecordField
from purebpf.slotted import Slotted, field

__all__ = ["Unit"]


class Unit(Slotted):
    """A program to be: its number is the value of `probe`.

    Attributes:
        fields: of the context, `args.NAME`; None until the script asks for one.
        result_place: of the result of an fexit function in the context, in bytes.
    """

    number: int
    point: Point
    probe: tree.Probe
    fields: dict[str, RecordField] | None = None
    result_place: int = 0
    slots: list[tree.Slot] = field(default_factory=list, init=False)
