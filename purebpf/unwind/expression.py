"""DWARF expressions: numbers computed from registers and memory by a small stack machine.

Operations: DWARF 5, section 2.5; those that make no sense in call frame information (6.4.2) are
unsupported. An expression can jump backwards, so its steps are bounded.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from purebpf.tuples import NamedTuple
from purebpf.unwind.encoded import EncodingError, sleb, uleb

__all__ = [
    "ExpressionError",
    "RegisterForm",
    "added_to_word",
    "evaluate",
    "plt_threshold",
    "register_form",
]

_STEPS = 512
_DEEPEST = 64
_WORD = (1 << 64) - 1
_SIGN = 1 << 63
_HALF = struct.Struct("<h")
_CONSTANTS = {
    operation: struct.Struct(f"<{code}")
    for operation, code in zip(
        (0x03, 0x08, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x0E, 0x0F), "QBbHhIiQq", strict=True
    )
}
"""addr, and const1u to const8s."""

_DEREF, _CONST1U, _PLUS, _PLUS_UCONST = 0x06, 0x08, 0x22, 0x23
_LIT0, _LIT31 = 0x30, 0x4F
_PLTS = (bytes.fromhex("77088000 3f1a00 2a332422"), bytes.fromhex("74047800 3f1a00 2a322422"))
"""rsp + 8 + ((rip & 15 >= a literal) << 3), and esp + 4 + ((eip & 15 >= a literal) << 2), the
literal left out; GNU ld writes them for .plt.
"""


class ExpressionError(Exception):
    """An expression that is not well formed, does not end, or needs a register that is lost."""


class RegisterForm(NamedTuple):
    """An expression that is a register plus an offset, and its remainder."""

    register: int
    offset: int
    then: bytes


def register_form(code: bytes) -> RegisterForm | None:
    """An expression taken apart, if it starts with a register."""
    if not code or not 0x70 <= code[0] <= 0x8F:
        return None
    try:
        offset, at = sleb(code, 1)
    except EncodingError:
        return None
    return RegisterForm(code[0] - 0x70, offset, code[at:])


def added_to_word(code: bytes) -> int | None:
    """Return the number that an expression adds to a word that it loads; None: it is another one.

    The number is at most 127. Runtimes that switch stacks (SBCL) keep the old one in a frame.
    """
    if code[:1] != bytes((_DEREF,)):
        return None
    then = code[1:]
    if not then:
        return 0
    if len(then) == 2 and _LIT0 <= then[0] <= _LIT31 and then[1] == _PLUS:
        return then[0] - _LIT0
    has_byte = (len(then) == 3 and then[0] == _CONST1U and then[2] == _PLUS) or (
        len(then) == 2 and then[0] == _PLUS_UCONST
    )
    return then[1] if has_byte and then[1] < 128 else None


def plt_threshold(code: bytes) -> int | None:
    """Return the place of the push in a stub of the PLT, if this is the expression for a PLT."""
    is_plt = len(code) > 6 and b"%b\0%b" % (code[:6], code[7:]) in _PLTS
    return code[6] - 0x30 if is_plt and 0x30 <= code[6] <= 0x4F else None


def evaluate(
    code: bytes,
    register: Callable[[int], int | None],
    read: Callable[[int, int], int],
    start: int | None = None,
) -> int:
    """Return the result of an expression, as an unsigned 64-bit number.

    Args:
        code: the operations.
        register: the value of a register by its number; None if it is lost.
        read: (address, bytes) -> the unsigned number there; its exceptions pass through.
        start: the initial stack: the CFA, for a register's rule.

    Raises:
        ExpressionError: it has no value.
    """
    stack: list[int] = [] if start is None else [start]
    at = steps = 0
    try:
        while at < len(code):
            steps += 1
            if steps > _STEPS or len(stack) > _DEEPEST:
                raise ExpressionError
            at = _step(code, at, stack, register, read)
            if at < 0:
                raise ExpressionError
        return stack[-1]
    except (IndexError, struct.error, EncodingError):
        raise ExpressionError from None


def _step(
    code: bytes,
    at: int,
    stack: list[int],
    register: Callable[[int], int | None],
    read: Callable[[int, int], int],
) -> int:
    """One operation; where the next one is."""
    operation = code[at]
    at += 1
    if 0x30 <= operation <= 0x4F:  # lit0 to lit31
        stack.append(operation - 0x30)
    elif 0x70 <= operation <= 0x8F:  # breg0 to breg31
        offset, at = sleb(code, at)
        stack.append(_value(register, operation - 0x70) + offset & _WORD)
    elif operation == 0x92:  # bregx
        number, at = uleb(code, at)
        offset, at = sleb(code, at)
        stack.append(_value(register, number) + offset & _WORD)
    elif operation in _CONSTANTS:
        layout = _CONSTANTS[operation]
        stack.append(layout.unpack_from(code, at)[0] & _WORD)
        at += layout.size
    elif operation in (0x10, 0x11):  # constu, consts
        number, at = (uleb if operation == 0x10 else sleb)(code, at)
        stack.append(number & _WORD)
    elif operation == 0x06:  # deref
        stack.append(read(stack.pop(), 8))
    elif operation == 0x94:  # deref_size
        size = code[at]
        if size not in (1, 2, 4, 8):
            raise ExpressionError
        stack.append(read(stack.pop(), size))
        at += 1
    elif operation == 0x23:  # plus_uconst
        number, at = uleb(code, at)
        stack.append(stack.pop() + number & _WORD)
    elif operation in (0x28, 0x2F):  # bra, skip
        (distance,) = _HALF.unpack_from(code, at)
        at += 2
        if operation == 0x2F or stack.pop():
            at += distance
    elif operation in _BINARY:
        second, first = stack.pop(), stack.pop()
        stack.append(_BINARY[operation](first, second) & _WORD)
    elif operation in _UNARY:
        stack.append(_UNARY[operation](stack.pop()) & _WORD)
    elif operation == 0x15:  # pick
        stack.append(stack[-1 - code[at]])
        at += 1
    elif operation == 0x13:  # drop
        stack.pop()
    elif operation == 0x16:  # swap
        stack[-2:] = stack[-1], stack[-2]
    elif operation == 0x17:  # rot
        stack[-3:] = stack[-1], stack[-3], stack[-2]
    elif operation in (0x12, 0x14):  # dup, over
        stack.append(stack[-1 if operation == 0x12 else -2])
    elif operation != 0x96:  # nop
        raise ExpressionError
    return at


def _value(register: Callable[[int], int | None], number: int) -> int:
    value = register(number)
    if value is None:
        raise ExpressionError
    return value


def _as_signed(number: int) -> int:
    return number - ((number & _SIGN) << 1)


def _divide(first: int, second: int) -> int:
    """Rounds towards 0, as C does."""
    if not second:
        raise ExpressionError
    one, other = _as_signed(first), _as_signed(second)
    quotient = abs(one) // abs(other)
    return quotient if (one < 0) == (other < 0) else -quotient


def _remainder(first: int, second: int) -> int:
    if not second:
        raise ExpressionError
    return first % second


def _shift_left(first: int, second: int) -> int:
    return first << second if second < 64 else 0


_BINARY: dict[int, Callable[[int, int], int]] = {
    0x1A: lambda first, second: first & second,
    0x1B: _divide,
    0x1C: lambda first, second: first - second,
    0x1D: _remainder,
    0x1E: lambda first, second: first * second,
    0x21: lambda first, second: first | second,
    0x22: lambda first, second: first + second,
    0x24: _shift_left,
    0x25: lambda first, second: first >> min(second, 64),
    0x26: lambda first, second: _as_signed(first) >> min(second, 64),
    0x27: lambda first, second: first ^ second,
    0x29: lambda first, second: first == second,
    0x2A: lambda first, second: _as_signed(first) >= _as_signed(second),
    0x2B: lambda first, second: _as_signed(first) > _as_signed(second),
    0x2C: lambda first, second: _as_signed(first) <= _as_signed(second),
    0x2D: lambda first, second: _as_signed(first) < _as_signed(second),
    0x2E: lambda first, second: first != second,
}
_UNARY: dict[int, Callable[[int], int]] = {
    0x19: lambda number: abs(_as_signed(number)),
    0x1F: lambda number: -number,
    0x20: lambda number: ~number,
}
