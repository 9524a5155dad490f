"""Types of calls that print, run programs, or end the script."""

from __future__ import annotations

from collections.abc import Mapping

from purebpf.script import tree
from purebpf.script.checking import Checking
from purebpf.script.format_string import split_format
from purebpf.script.functions.arguments import Infer, literal_argument, refuse
from purebpf.script.types import NONE, Type, spell

__all__ = ["PRINTING"]


def _printf(check: Checking, node: tree.Call) -> Type:
    types = [check.infer(item) for item in node.arguments[1:]]
    try:
        conversions, _ = split_format(literal_argument(check, node, 0))
    except ValueError as error:
        raise refuse(node.arguments[0], f"printf: unknown conversion {error}") from None
    if len(types) != len(conversions):
        side = "not enough" if len(types) < len(conversions) else "too many"
        message = f"{side} arguments for format string ({len(types)} supplied, "
        raise refuse(node, f"{message}{len(conversions)} expected)")
    for conversion, type_ in zip(conversions, types, strict=True):
        if type_ is not None and not _fits(conversion.kind, type_):
            message = f"unsupported format specifier for type '{spell(type_)}': {conversion.kind}"
            raise refuse(node, message)
    return NONE


def _fits(kind: str, type_: Type) -> bool:
    if type_.kind in ("none", "void", "args", "hist", "lhist", "tseries"):
        return False
    if kind == "s":
        return True
    if kind in ("r", "rh", "rx"):
        return type_.kind in ("buffer", "string")
    if kind == "gr":
        return type_.kind == "int"
    return type_.kind in ("int", "bool", "ptr", "ksym")


def _unsafe(check: Checking, node: tree.Call) -> Type:
    if not check.settings.is_unsafe:
        raise refuse(node, f"{node.name}() is an unsafe function being used in safe mode")
    return _printf(check, node)


def _print(check: Checking, node: tree.Call) -> Type:
    argument = node.arguments[0]
    if isinstance(argument, tree.Map) and argument.key is None:
        info = check.map_info(argument.name)
        for item in node.arguments[1:]:
            if check.number(item, "an argument of print()") < 0:
                raise refuse(item, "print() expects a positive number")
        if info.value is None and check.is_final:
            raise refuse(argument, f"Undefined map: {argument.name}")
        return NONE
    if len(node.arguments) > 1:
        raise refuse(node, "Non-map print() only takes 1 argument, "
                            f"{len(node.arguments)} found")  # fmt: skip
    type_ = check.infer(argument)
    if type_ is not None and type_.has_no_value:
        raise refuse(argument, f"print() can not print a value of type '{spell(type_)}'")
    return NONE


def _join(check: Checking, node: tree.Call) -> Type:
    type_ = check.infer(node.arguments[0])
    if type_ is not None and type_.kind not in ("int", "ptr"):
        raise refuse(node, f"join() expects a pointer argument, got {spell(type_)}")
    if len(node.arguments) == 2:
        literal_argument(check, node, 1)
    return NONE


def _time(check: Checking, node: tree.Call) -> Type:
    if node.arguments:
        literal_argument(check, node, 0)
    return NONE


def _exit(check: Checking, node: tree.Call) -> Type:
    for item in node.arguments:
        check.infer(item)
    return NONE


PRINTING: Mapping[str, tuple[int, int, Infer]] = {
    "printf": (1, 64, _printf), "errorf": (1, 64, _printf), "warnf": (1, 64, _printf),
    "cat": (1, 64, _printf), "system": (1, 64, _unsafe), "print": (1, 3, _print),
    "join": (1, 2, _join), "time": (0, 1, _time), "exit": (0, 1, _exit),
}  # fmt: skip
"""The least and the largest number of arguments, and the function that finds the type."""
