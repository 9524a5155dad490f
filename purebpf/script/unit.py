"""`Unit`: one action block at one attach point."""

from __future__ import annotations

import re

from purebpf.script import tree
from purebpf.script.point import Point
from purebpf.script.tracepoint_fields import RecordField
from purebpf.slotted import Slotted, field

__all__ = ["Unit"]

_LONGEST = 96
"""Bytes of a place in a name: the kernel takes 127 for a function."""


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

    @property
    def program_name(self) -> str:
        """The name of its program, which is like bpftrace's: `kprobe_vfs_read_1`."""
        place = self.point.name[:_LONGEST]
        return f"{re.sub(r'[^A-Za-z0-9_]', '_', place)}_{self.number + 1}"
