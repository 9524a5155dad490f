"""Types of calls that read, compare and make texts."""

from __future__ import annotations

from collections.abc import Mapping

from purebpf.abi.syscalls import machine
from purebpf.script import tree
from purebpf.script.checking import Checking
from purebpf.script.constants import encode
from purebpf.script.functions.arguments import Infer, literal_argument, refuse
from purebpf.script.types import BOOL, U64, Type, late, spell, string

__all__ = ["TEXTS"]


def _str(check: Checking, node: tree.Call) -> Type | None:
    longest = check.config.numbers["max_strlen"] + 1  # its NUL does not count
    if (tail := _parameter_tail(check, node.arguments[0])) is not None:
        node.arguments[0] = tree.String(node.start, node.end, tail)
    type_ = check.infer(node.arguments[0])
    if len(node.arguments) == 2:
        check.infer(node.arguments[1])
        length = check.constant(node.arguments[1])
        if length is not None and length < 0:
            raise refuse(node.arguments[1], "str cannot use negative length")
        if length:
            longest = min(longest, length)
    argument = node.arguments[0]
    if isinstance(argument, tree.Parameter):
        value = check.settings.parameter(argument.number)
        text = str(value) if argument.number <= len(check.settings.parameters) else ""
        return string(min(longest, len(encode(text)) + 1))
    if type_ is None:
        return None
    if isinstance(argument, tree.String) and len(node.arguments) == 2:
        return _start_of_literal(check, node, argument)
    if type_.kind == "string":
        return string(min(longest, type_.size))
    if type_.kind == "array" and type_.target.size == 1:
        return string(min(longest, type_.size + 1))
    if type_.kind not in ("int", "ptr"):
        message = f"str() expects an integer or a pointer type as first argument ({spell(type_)} "
        raise refuse(node, f"{message}provided)")
    return string(longest)


def _start_of_literal(check: Checking, node: tree.Call, text: tree.String) -> Type:
    """Cut a literal to a number of characters that the NUL does not count for."""
    length = check.constant(node.arguments[1])
    data = encode(text.value)
    if length is not None:
        data = data[:length]
        node.arguments[0] = tree.String(
            text.start, text.end, data.decode("utf-8", "surrogateescape")
        )
        node.arguments[0].type = string(len(data) + 1)
    return string(len(data) + 1)


def _parameter_tail(check: Checking, node: tree.Expression) -> str | None:
    """Return the text of `$1 + 2` without its first characters; None for other expressions."""
    if not (
        isinstance(node, tree.Binary)
        and node.operator == "+"
        and isinstance(node.left, tree.Parameter)
        and isinstance(text := check.settings.parameter(node.left.number), str)
    ):
        return None
    check.infer(node.right)
    count = check.constant(node.right)
    if count is None or not 0 <= count <= len(text):
        raise refuse(node, f"only 0 to {len(text)} can be added to a parameter of this length")
    return text[count:]


def _buf(check: Checking, node: tree.Call) -> Type | None:
    type_ = check.infer(node.arguments[0])
    size = check.config.numbers["max_strlen"]
    if len(node.arguments) == 2:
        check.infer(node.arguments[1])
        length = check.constant(node.arguments[1])
        if length is not None:
            if length < 0:
                raise refuse(node.arguments[1], "buf cannot use negative length")
            size = min(size, length)
    elif type_ is not None:
        if type_.kind not in ("array", "string"):
            raise refuse(node, "buf() expects a length argument for non-array type "
                                f"{spell(type_)}")  # fmt: skip
        size = min(size, type_.size)
    return Type("buffer", max(1, size))


def _strncmp(check: Checking, node: tree.Call) -> Type:
    _strings(check, node)
    check.number(node.arguments[2], "the length of strncmp()")
    return U64


def _strings(check: Checking, node: tree.Call) -> None:
    for item in node.arguments[:2]:
        type_ = check.infer(item)
        if type_ is not None and type_.kind != "string":
            message = f"{node.name}() expects strings, not a value of type '{spell(type_)}'"
            raise refuse(item, message)


def _strcontains(check: Checking, node: tree.Call) -> Type:
    text, part = node.arguments
    if (
        isinstance(part, tree.String)
        and isinstance(text, tree.Name)
        and (text.name == "probe" or check.infer(text) == late("probe"))
    ):
        node.value = int(part.value in check.unit.point.name)
        return BOOL
    _strings(check, node)
    return BOOL


def _strlen(check: Checking, node: tree.Call) -> Type:
    type_ = check.infer(node.arguments[0])
    if type_ is not None and type_.kind != "string":
        raise refuse(node, f"strlen() expects a string, got {spell(type_)}")
    return U64


def _strerror(check: Checking, node: tree.Call) -> Type:
    check.infer(node.arguments[0])
    return late("strerror")


def _signal_name(check: Checking, node: tree.Call) -> Type:
    check.infer(node.arguments[0])
    return late("signal")


def _syscall_name(check: Checking, node: tree.Call) -> Type:
    type_ = check.infer(node.arguments[0])
    if type_ is not None and type_.kind != "int":
        raise refuse(node, f"syscall_name() expects an integer argument, got {spell(type_)}")
    return late("syscall", text=machine(check.host.machine).native)


def _strftime(check: Checking, node: tree.Call) -> Type:
    check.infer(node.arguments[1])
    return late("time", text=literal_argument(check, node, 0))


TEXTS: Mapping[str, tuple[int, int, Infer]] = {
    "str": (1, 2, _str), "buf": (1, 2, _buf), "strncmp": (3, 3, _strncmp),
    "strcontains": (2, 2, _strcontains), "strlen": (1, 1, _strlen),
    "strerror": (1, 1, _strerror), "signal_name": (1, 1, _signal_name),
    "syscall_name": (1, 1, _syscall_name),
    "strftime": (2, 2, _strftime),
}  # fmt: skip
"""The least and the largest number of arguments, and the function that finds the type."""
