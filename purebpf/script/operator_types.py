"""Types of operators, by the types of their operands."""

from __future__ import annotations

from collections.abc import Callable

from purebpf.script import tree
from purebpf.script.script_error import ScriptError
from purebpf.script.types import BOOL, I64, U64, Type, c_size, integer, spell, unify

__all__ = ["COMPARISONS", "binary_type", "cast_type", "check_comparison", "unary_type"]

COMPARISONS = frozenset({"==", "!=", "<", ">", "<=", ">="})
_NUMBERS = frozenset({"int", "bool", "ptr", "ksym"})


def unary_type(node: tree.Unary, type_: Type) -> Type:
    """Return the type of an operator before an operand of a type.

    Raises:
        ScriptError: the operator does not take such an operand.
    """
    if node.operator == "!":
        return BOOL
    if type_.kind not in _NUMBERS:
        message = f"The {node.operator} operator can not be used on expressions of type "
        raise ScriptError(f"{message}'{spell(type_)}'", node.start, node.end)
    return I64 if node.operator == "-" else integer(8, type_.signed)


def binary_type(
    node: tree.Binary,
    left: Type,
    right: Type,
    is_signed: Callable[[tree.Expression], bool],
) -> Type:
    """Return the type of an arithmetic operator.

    Args:
        node: the expression, for errors.
        left: the type of the left operand.
        right: the type of the right operand.
        is_signed: returns True if an operator takes an operand as signed.

    Raises:
        ScriptError: the operator does not take such operands.
    """
    operator = node.operator
    if not {left.kind, right.kind} <= _NUMBERS:
        message = f"The {operator} operator can not be used on expressions of types "
        message += f"'{spell(left)}', '{spell(right)}'"
        raise ScriptError(message, node.start, node.end)
    if "ptr" in (left.kind, right.kind):
        return _pointer_arithmetic(node, left, right)
    if operator == "-":
        return I64
    if operator in ("<<", ">>"):
        return integer(8, is_signed(node.left))
    return integer(8, is_signed(node.left) or is_signed(node.right))


def _pointer_arithmetic(node: tree.Binary, left: Type, right: Type) -> Type:
    if node.operator == "-" and left.kind == right.kind:
        return I64
    if node.operator in "+-" and left.kind == "ptr" and right.kind != "ptr":
        return left
    if node.operator == "+" and right.kind == "ptr" and left.kind != "ptr":
        return right
    if node.operator in ("&", "|", ">>", "<<", "%", "/"):
        return U64
    message = f"The {node.operator} operator can not be used on a pointer"
    raise ScriptError(message, node.start, node.end)


def check_comparison(node: tree.Binary, left: Type, right: Type) -> None:
    """Check that values of two types can be compared.

    Raises:
        ScriptError: they cannot, or only for equality.
    """
    kinds = {left.kind, right.kind}
    if kinds <= _NUMBERS | {"username", "cgroup", "kstack"} or kinds == {"probe", "string"}:
        return
    if kinds <= {"string"} or (len(kinds) == 1 and unify(left, right) is not None):
        if node.operator in ("==", "!="):
            return
        message = f"The {node.operator} operator can not be used on expressions of types "
        message += f"'{spell(left)}', '{spell(right)}'"
        raise ScriptError(message, node.start, node.end)
    message = f"Type mismatch for '{node.operator}': comparing '{spell(left)}' with "
    raise ScriptError(f"{message}'{spell(right)}'", node.start, node.end)


def cast_type(node: tree.Cast, to: Type, inner: Type) -> Type:
    """Return the type of a cast from type `inner` to type `to`.

    Raises:
        ScriptError: there is no such cast.
    """
    if to.kind == "array" and (made := _array_cast(to, inner)) is not None:
        return made
    if to.kind == "int" and inner.kind == "array" and inner.size == to.size:
        return to
    if to.kind == "ptr" and inner.kind in ("array", "string") and _is_memory(node.operand):
        return to.in_space(inner.space)  # as in C, an array is the address of its first element
    if to.kind not in ("int", "bool", "ptr") or inner.kind not in _NUMBERS:
        message = f"Cannot cast from '{spell(inner)}' to '{spell(to)}'"
        raise ScriptError(message, node.start, node.end)
    return to.in_space(inner.space) if inner.kind == "ptr" and to.kind == "ptr" else to


def _is_memory(node: tree.Expression) -> bool:
    """Return True for a part of a struct behind a pointer, or of the arguments."""
    if isinstance(node, tree.Deref):
        return True
    if not isinstance(node, tree.Field | tree.Index):
        return False
    kind = node.base.type.kind
    return kind in ("ptr", "args") or (kind in ("struct", "array") and _is_memory(node.base))


def _array_cast(to: Type, inner: Type) -> Type | None:
    """Return the type of the bytes of a number or a string as an array; None if they do not fit."""
    item, size = to.target, c_size(inner)
    if inner.kind not in ("int", "bool", "string") or item.kind not in ("int", "bool"):
        return None
    if to.count == 0 and size % item.size == 0:
        return Type("array", size, count=size // item.size, items=(item,))
    most = size if inner.kind == "string" else 8
    return to if 0 < to.size <= most else None
