"""`check_call`: the type of any call."""

from __future__ import annotations

from collections.abc import Mapping

from purebpf.script import tree
from purebpf.script.builtins import BUILTINS
from purebpf.script.checking import Checking
from purebpf.script.functions.aggregates import MAP_FUNCTIONS
from purebpf.script.functions.arguments import Infer, check_count, refuse
from purebpf.script.functions.effects import EFFECTS
from purebpf.script.functions.machine import MACHINE
from purebpf.script.functions.maps import MAPS
from purebpf.script.functions.network import NETWORK
from purebpf.script.functions.printing import PRINTING
from purebpf.script.functions.standard import STANDARD
from purebpf.script.functions.texts import TEXTS
from purebpf.script.types import Type
from purebpf.similar import suggest

__all__ = ["check_call", "is_function"]

_FUNCTIONS: Mapping[str, tuple[int, int, Infer]] = {
    **PRINTING, **MAPS, **TEXTS, **NETWORK, **MACHINE, **EFFECTS,
    **STANDARD,
}  # fmt: skip
_LATER = frozenset({
    "strstr", "getopt",
    "percpu_kaddr", "skboutput", "unwatch",
    "static_assert", "fail", "debugf", "find", "is_literal", "memcmp",
    "str_concat", "strcap", "dw_ustack",
    "typeinfo", "comptime", "kfunc_allowed", "default_str_length",
    "probe_read", "bench",
})  # fmt: skip


def check_call(check: Checking, node: tree.Call) -> Type | None:
    """Return the type of a call.

    Raises:
        ScriptError: an unknown function, or wrong arguments.
    """
    if not node.name:
        return check.infer(node.arguments[0])
    if node.name in MAP_FUNCTIONS:
        raise refuse(node, f"{node.name}() should be directly assigned to a map")
    if node.name in _FUNCTIONS:
        least, most, infer = _FUNCTIONS[node.name]
        check_count(node, least, most)
        return infer(check, node)
    if node.name == "ppid" and [getattr(x, "name", "") for x in node.arguments] == ["curtask"]:
        node.arguments = []
    if node.name in ("pid", "tid") and len(node.arguments) == 1:
        return _task_number(check, node)
    if node.name == "comm" and len(node.arguments) == 1:
        return _task_name(check, node)
    if node.name in BUILTINS and not node.arguments:
        return _builtin(check, node)
    if node.name in _LATER:
        raise refuse(node, f"{node.name}() is not supported yet")
    hint = suggest(node.name, [*_FUNCTIONS, *MAP_FUNCTIONS])
    raise refuse(node, f"Unknown function: '{node.name}'", hint)


def _task_number(check: Checking, node: tree.Call) -> Type | None:
    """Treat `pid(init)` as a builtin of its own, and `pid(curr_ns)` as `pid`."""
    namespace = node.arguments[0]
    word = namespace.name if isinstance(namespace, tree.Name) else ""
    if word not in ("curr_ns", "init"):
        message = f"Invalid PID namespace mode: {word} (expects: curr_ns or init)"
        raise refuse(namespace, message)
    if word == "init":
        node.name = f"initial {node.name}"
    return _builtin(check, node)


def _task_name(check: Checking, node: tree.Call) -> Type | None:
    """Treat `comm(tid)` as `comm`, and `comm(pid)` as the name of the first thread."""
    number = node.arguments[0]
    word = number.name if isinstance(number, tree.Name | tree.Call) else ""
    if word not in ("pid", "tid") or (isinstance(number, tree.Call) and number.arguments):
        raise refuse(node, "comm() of other tasks than pid and tid is not supported yet")
    node.name = "leader_comm" if word == "pid" else "comm"
    return _builtin(check, node)


def is_function(name: str) -> bool:
    """Return True for functions, and builtins that can be called."""
    return name in _FUNCTIONS or name in MAP_FUNCTIONS or name in BUILTINS


def _builtin(check: Checking, node: tree.Call) -> Type | None:
    """Treat `pid()` as `pid`."""
    name = tree.Name(node.start, node.end, node.name)
    type_ = check.infer(name)
    node.arguments = [name]
    node.name = ""
    node.value = name.value
    return type_
