"""`fold`, `encode`: values of expressions that are known at compile time."""

from __future__ import annotations

from purebpf.script import tree
from purebpf.script.script_error import ScriptError
from purebpf.script.settings import Settings

__all__ = ["apply", "check_literals", "encode", "fold", "is_literal", "wrap"]

_MASK = (1 << 64) - 1


def encode(text: str) -> bytes:
    """Return a text of a script as bytes; bytes that are not UTF-8 are as in its file."""
    return text.encode("utf-8", "surrogateescape")


def wrap(value: int, size: int, is_signed: bool) -> int:
    """Return the value as an integer of `size` bytes holds it."""
    bits = 8 * size
    value &= (1 << bits) - 1
    return value - (1 << bits) if is_signed and value >> (bits - 1) else value


def apply(operator: str, left: int, right: int) -> int | None:
    """Return the result of an operator for numbers.

    None: a division by zero, or a shift by less than no or more than 63 bits.
    """
    if operator in ("/", "%"):
        if right == 0:
            return None
        quotient = abs(left) // abs(right)
        quotient = quotient if (left < 0) == (right < 0) else -quotient
        return quotient if operator == "/" else left - quotient * right
    if operator in ("<<", ">>"):
        return None if not 0 <= right < 64 else left << right if operator == "<<" else left >> right
    results = {
        "+": left + right, "-": left - right, "*": left * right, "&": left & right,
        "|": left | right, "^": left ^ right, "==": int(left == right), "!=": int(left != right),
        "<": int(left < right), ">": int(left > right), "<=": int(left <= right),
        ">=": int(left >= right), "&&": int(bool(left and right)),
        "||": int(bool(left or right)),
    }  # fmt: skip
    return results[operator]


def is_literal(node: tree.Expression) -> bool:
    """Return True if an expression consists of numbers only, whose sign is open."""
    match node:
        case tree.Integer() | tree.Parameter():
            return True
        case tree.Unary():
            return is_literal(node.operand)
        case tree.Binary():
            return is_literal(node.left) and is_literal(node.right)
        case tree.Name():
            return node.value is not None and not node.type.name
        case _:
            return False


def fold(node: tree.Expression, settings: Settings) -> int | None:
    """Return the value of an expression, None if it is only known when the script runs."""
    match node:
        case tree.Integer() | tree.Bool():
            return int(node.value)
        case tree.Parameter():
            value = settings.parameter(node.number)
            return value if isinstance(value, int) else None
        case tree.Name() | tree.Call() | tree.SizeOf() | tree.OffsetOf():
            return node.value
        case tree.Unary():
            return _fold_unary(node, settings)
        case tree.Binary():
            return _fold_binary(node, settings)
        case tree.Cast() if node.type.kind == "int":
            inner = fold(node.operand, settings)
            return None if inner is None else wrap(inner, node.type.size, node.type.signed)
        case _:
            return None


def _fold_unary(node: tree.Unary, settings: Settings) -> int | None:
    inner = fold(node.operand, settings)
    if inner is None:
        return None
    return {"-": -inner, "~": ~inner, "!": int(not inner)}[node.operator]


def _fold_binary(node: tree.Binary, settings: Settings) -> int | None:
    left, right = fold(node.left, settings), fold(node.right, settings)
    if left is None or right is None:
        return None
    result = apply(node.operator, left, right)
    if result is None or _fits(result):
        return result
    return wrap(result, 8, True)


def _fits(value: int) -> bool:
    """Return True if a value is that of a signed or an unsigned number of 8 bytes."""
    return -(1 << 63) <= value <= _MASK


def check_literals(node: tree.Binary, settings: Settings) -> None:
    """Check that an operator of two numbers has a result.

    Raises:
        ScriptError: it divides by zero, shifts too far, or its result does not fit into 8 bytes.
    """
    if not is_literal(node):
        return
    left, right = fold(node.left, settings), fold(node.right, settings)
    if left is None or right is None:
        return
    result = apply(node.operator, left, right)
    if result is None or not _fits(result):
        raise ScriptError(
            "unable to fold literals due to overflow or underflow", node.start, node.end
        )
