"""An interpreter of a checked script's expressions: the oracle for generated code."""

from __future__ import annotations

from collections.abc import Mapping

from purebpf.script import tree

MASK = (1 << 64) - 1


def signed(word: int) -> int:
    """The word as a signed number."""
    return word - (1 << 64) if word >> 63 else word


def is_number(node: tree.Expression) -> bool:
    """True for numbers as they are written, whose sign is open."""
    match node:
        case tree.Integer():
            return True
        case tree.Unary():
            return is_number(node.operand)
        case tree.Binary():
            return is_number(node.left) and is_number(node.right)
    return False


def is_signed(node: tree.Expression, variables: Mapping[str, int]) -> bool:
    """True if the operand makes an operator signed."""
    if is_number(node):
        return signed(evaluate(node, variables)) < 0
    return node.type.signed


def evaluate(node: tree.Expression, variables: Mapping[str, int]) -> int:
    """The 64-bit word of an expression."""
    match node:
        case tree.Integer():
            return node.value & MASK
        case tree.Variable():
            return variables[node.name] & MASK
        case tree.Unary():
            word = evaluate(node.operand, variables)
            return {"-": -word, "~": ~word, "!": int(not word)}[node.operator] & MASK
        case tree.Cast():
            bits = 8 * node.type.size
            word = evaluate(node.operand, variables) & ((1 << bits) - 1)
            negative = node.type.signed and word >> (bits - 1)
            return (word - (1 << bits) if negative else word) & MASK
        case tree.Ternary():
            test = evaluate(node.test, variables)
            return evaluate(node.yes if test else node.no, variables)
        case tree.Binary():
            return _binary(node, variables)
    raise AssertionError(node)


def _binary(node: tree.Binary, variables: Mapping[str, int]) -> int:
    left, right = evaluate(node.left, variables), evaluate(node.right, variables)
    operator = node.operator
    either = is_signed(node.left, variables) or is_signed(node.right, variables)
    a, b = (signed(left), signed(right)) if either else (left, right)
    if operator in ("&&", "||"):
        return int(bool(left and right)) if operator == "&&" else int(bool(left or right))
    if operator in ("/", "%"):
        if not b:
            return 1  # and a warning, as bpftrace from 0.27 on
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return (quotient if operator == "/" else a - quotient * b) & MASK
    if operator == ">>":
        return (signed(left) if is_signed(node.left, variables) else left) >> (right & 63) & MASK
    results = {
        "+": left + right, "-": left - right, "*": left * right, "&": left & right,
        "|": left | right, "^": left ^ right, "<<": left << (right & 63),
        "==": left == right, "!=": left != right, "<": a < b, ">": a > b, "<=": a <= b,
        ">=": a >= b,
    }  # fmt: skip
    return int(results[operator]) & MASK
