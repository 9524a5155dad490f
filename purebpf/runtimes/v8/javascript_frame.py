"""A frame of V8's code, with its name."""

from __future__ import annotations

from purebpf.tuples import NamedTuple

__all__ = ["ANONYMOUS", "BUILT_IN", "UNKNOWN_FUNCTION", "JavaScriptFrame"]

ANONYMOUS = "<anonymous>"
BUILT_IN = "built-in"
"""The file of functions that are V8's own: Array.prototype.forEach."""
UNKNOWN_FUNCTION = "[unknown JavaScript function]"


class JavaScriptFrame(NamedTuple):
    """A function that is active.

    Attributes:
        name: "handle"; of V8's own frames their kind, "EntryFrame".
        file: the name of its script, "/srv/shop.js" or "node:internal/timers"; `BUILT_IN`; "" for
            one that has none, such as eval().
        line: 0 where it is not known.
        is_function: False for frames of V8's own.
        is_inlined: whether its caller's code holds it.
    """

    name: str
    file: str
    line: int
    is_function: bool
    is_inlined: bool = False
