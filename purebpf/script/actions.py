"""`Action`: the work of user space for an event."""

from __future__ import annotations

from purebpf.script.types import Type
from purebpf.tuples import NamedTuple

__all__ = ["Action"]


class Action(NamedTuple):
    """The work for one kind of event.

    Attributes:
        kind: "printf", "print map", "print key", "print value", "clear", "zero", "time", "exit".
        types: of the values in the event, which lie one behind the other.
        text: a format string, or the name of a map.
        numbers: the arguments `top` and `div` of print(); the start and the end of errorf() and
            warnf() in the script, those in a macro first.
    """

    kind: str
    types: tuple[Type, ...] = ()
    text: str = ""
    numbers: tuple[int, ...] = ()
