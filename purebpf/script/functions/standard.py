"""Functions of the standard library that are expressions of others: assert(), container_of()."""

from __future__ import annotations

from collections.abc import Mapping

from purebpf.script import tree
from purebpf.script.checking import Checking
from purebpf.script.functions.arguments import Infer, refuse
from purebpf.script.types import Type

__all__ = ["STANDARD"]


def _assert(check: Checking, node: tree.Call) -> Type | None:
    """Treat `assert(test, message)` as an error and an exit if the test fails."""
    if node.expansion is None:
        start, end = node.start, node.end
        test, message = node.arguments
        text = tree.String(start, end, "assert failed: %s")
        error = tree.Call(start, end, "errorf", [text, message])
        leave = tree.Call(start, end, "exit", [tree.Integer(start, end, 1)])
        body = tree.Block(start, end, [tree.Discard(start, end, call) for call in (error, leave)])
        fails = tree.Unary(test.start, test.end, "!", test)
        node.expansion = tree.BlockValue(start, end, [tree.If(start, end, fails, body, None)], None)
    return check.infer(node.expansion)


def _container_of(check: Checking, node: tree.Call) -> Type | None:
    """Treat `container_of(pointer, typeof(type), member)` as a cast of the address before it."""
    if node.expansion is None:
        start, end = node.start, node.end
        address, outer, member = node.arguments
        if not isinstance(outer, tree.TypeArgument) or not isinstance(member, tree.Name):
            raise refuse(node, "container_of() expects a pointer, typeof(TYPE) and a member")
        target = outer.target
        number = tree.Cast(start, end, tree.TypeName(start, end, "uint64", ()), address)
        offset = tree.OffsetOf(start, end, target, [member.name])
        begin = tree.Binary(start, end, "-", number, offset)
        kind = tree.TypeName(start, end, target.name, (*target.suffixes, -1), target.of)
        node.expansion = tree.BlockValue(start, end, [], tree.Cast(start, end, kind, begin))
    return check.infer(node.expansion)


STANDARD: Mapping[str, tuple[int, int, Infer]] = {
    "assert": (2, 2, _assert), "container_of": (3, 3, _container_of),
}  # fmt: skip
"""The least and the largest number of arguments, and the function that finds the type."""
