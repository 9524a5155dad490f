"""Types of calls whose argument is a map."""

from __future__ import annotations

from collections.abc import Mapping

from purebpf.script import tree
from purebpf.script.checking import Checking
from purebpf.script.functions.arguments import Infer, refuse
from purebpf.script.types import BOOL, NONE, U64, Type, spell

__all__ = ["MAPS"]


def _map_argument(check: Checking, node: tree.Call) -> tree.Map:
    argument = node.arguments[0]
    if not isinstance(argument, tree.Map):
        raise refuse(node, f"{node.name}() expects a map to be provided")
    check.map_info(argument.name)
    return argument


def _check_defined(check: Checking, argument: tree.Map) -> None:
    if check.is_final and check.maps[argument.name].value is None:
        raise refuse(argument, f"Undefined map: {argument.name}")


def _clear(check: Checking, node: tree.Call) -> Type:
    argument = _map_argument(check, node)
    if argument.key is not None:
        raise refuse(argument, f"{node.name}() expects a map without a key")
    _check_defined(check, argument)
    return NONE


def _delete(check: Checking, node: tree.Call) -> Type:
    argument = _map_argument(check, node)
    info = check.maps[argument.name]
    if len(node.arguments) == 2:
        if argument.key is not None:
            raise refuse(argument, "delete() with two arguments expects a map without a key")
        argument.key, node.arguments = node.arguments[1], [argument]
    elif argument.key is None and info.is_scalar is False:
        raise refuse(node, "call to delete() with a single argument expects a map without "
                            "explicit keys (scalar map)")  # fmt: skip
    check.check_key(info, argument)
    if info.is_scalar and info.has_buckets:
        message = "delete() of a histogram without a key is not supported yet"
        raise refuse(node, message, "clear() removes its value")
    _check_defined(check, argument)
    return BOOL


def _has_key(check: Checking, node: tree.Call) -> Type:
    argument = _map_argument(check, node)
    if argument.key is None:
        argument.key, node.arguments = node.arguments[1], [argument, node.arguments[1]]
    info = check.maps[argument.name]
    if info.is_scalar:
        raise refuse(node, "call to has_key() expects a map with explicit keys (non-scalar map)")
    check.check_key(info, argument)
    _check_defined(check, argument)
    return BOOL


def _len(check: Checking, node: tree.Call) -> Type | None:
    argument = node.arguments[0]
    if isinstance(argument, tree.Map) and argument.key is None:
        info = check.map_info(argument.name)
        if info.is_scalar:
            raise refuse(node, "call to len() expects a map with explicit keys (non-scalar map)")
        if info.has_buckets:
            raise refuse(node, "len() of a histogram is not supported yet")
        _check_defined(check, argument)
        return U64
    type_ = check.infer(node.arguments[0])
    if type_ is None:
        return None
    if type_.kind == "array":
        node.value = type_.count
        return U64
    if type_.kind == "kstack" and isinstance(argument, tree.Name | tree.Call):
        return U64
    raise refuse(node, f"len() of a value of type '{spell(type_)}' is not supported yet")


MAPS: Mapping[str, tuple[int, int, Infer]] = {
    "clear": (1, 1, _clear), "zero": (1, 1, _clear), "delete": (1, 2, _delete),
    "has_key": (2, 2, _has_key), "len": (1, 1, _len),
}  # fmt: skip
"""The least and the largest number of arguments, and the function that finds the type."""
