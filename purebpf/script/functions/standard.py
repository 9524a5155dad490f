"""Functions of the standard library that are expressions of others: assert(), container_of()."""

from __future__ import annotations

from collections.abc import Mapping

from purebpf.script import tree
from purebpf.script.checking import Checking
from purebpf.script.functions.arguments import Infer, literal_argument, refuse
from purebpf.script.types import BOOL, Type

__all__ = ["STANDARD"]

_MOST_ERRORS = 4095
"""MAX_ERRNO of include/linux/err.h."""
_KINDS = {"str": "string", "ptr": "ptr", "array": "array", "integer": "int"}


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


def _is_err(check: Checking, node: tree.Call) -> Type | None:
    """Treat `is_err(x)` as a comparison: the last 4,095 numbers are errors, as in the kernel."""
    if node.expansion is None:
        start, end = node.start, node.end
        number = tree.Cast(start, end, tree.TypeName(start, end, "uint64", ()), node.arguments[0])
        last = tree.Integer(start, end, (1 << 64) - _MOST_ERRORS - 1)
        node.expansion = tree.BlockValue(start, end, [], tree.Binary(start, end, ">", number, last))
    return check.infer(node.expansion)


def _is_kind(check: Checking, node: tree.Call) -> Type | None:
    """Answer `is_str(x)` and the like before the script runs."""
    type_ = check.infer(node.arguments[0])
    if type_ is None:
        return None
    word = node.name.removeprefix("is_")
    if word == "unsigned_integer":
        node.value = int(type_.kind == "int" and not type_.signed)
    else:
        node.value = int(type_.kind == _KINDS[word])
    return BOOL


def _kfunc_exist(check: Checking, node: tree.Call) -> Type:
    name, kernel = literal_argument(check, node, 0), check.world.kernel
    node.value = int(kernel is not None and kernel.function(name) is not None)
    return BOOL


STANDARD: Mapping[str, tuple[int, int, Infer]] = {
    **{f"is_{word}": (1, 1, _is_kind) for word in (*_KINDS, "unsigned_integer")},
    "is_err": (1, 1, _is_err), "kfunc_exist": (1, 1, _kfunc_exist),
    "assert": (2, 2, _assert), "container_of": (3, 3, _container_of),
}  # fmt: skip
"""The least and the largest number of arguments, and the function that finds the type."""
