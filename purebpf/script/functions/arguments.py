"""Arguments of calls: their number, and literals among them."""

from __future__ import annotations

from collections.abc import Callable

from purebpf.script import tree
from purebpf.script.checking import Checking
from purebpf.script.script_error import ScriptError
from purebpf.script.types import Type

__all__ = ["Infer", "check_count", "literal_argument", "refuse"]

Infer = Callable[[Checking, tree.Call], Type | None]
"""Returns the type of a call, None if it is not known yet; raises ScriptError."""


def refuse(node: tree.Node, message: str, hint: str = "") -> ScriptError:
    """Return the error for a call or one of its arguments."""
    return ScriptError(message, node.start, node.end, hint)


def check_count(node: tree.Call, least: int, most: int) -> None:
    """Check the number of arguments.

    Raises:
        ScriptError: there are fewer than `least` or more than `most`.
    """
    given = len(node.arguments)
    if least <= given <= most:
        return
    words = {0: "no arguments", 1: "one argument", 2: "two arguments"}
    if least == most:
        wanted = words.get(least, f"{least} arguments")
    elif given < least:
        wanted = f"at least {words.get(least, f'{least} arguments')}"
    else:
        wanted = f"at most {words.get(most, f'{most} arguments')}"
    raise refuse(node, f"{node.name}() requires {wanted} ({given} provided)")


def literal_argument(check: Checking, node: tree.Call, index: int) -> str:
    """Return an argument that is known before the script runs: a literal, or `str($1)`."""
    argument = node.arguments[index]
    inner = argument
    while isinstance(inner, tree.Call | tree.BlockValue):
        if isinstance(inner, tree.Call) and inner.name == "str" and len(inner.arguments) == 1:
            inner = inner.arguments[0]
        else:
            check.infer(inner)
            block = inner.expansion if isinstance(inner, tree.Call) else inner
            if block is None or block.statements or block.result is None:
                break
            inner = block.result
    if isinstance(inner, tree.Parameter):
        inner = tree.String(argument.start, argument.end,
                            str(check.settings.parameter(inner.number)))  # fmt: skip
    if not isinstance(inner, tree.String):
        raise refuse(argument, f"{node.name}() expects a string literal")
    node.arguments[index] = inner
    return inner.value
