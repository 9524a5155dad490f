"""Types of calls that change the traced system; they need --unsafe."""

from __future__ import annotations

import re
from collections.abc import Mapping

from purebpf.script import tree
from purebpf.script.checking import Checking
from purebpf.script.functions.arguments import Infer, literal_argument, refuse
from purebpf.script.types import BOOL, NONE, Type, spell
from purebpf.similar import suggest

__all__ = ["EFFECTS", "SIGNALS"]

_MOST_SIGNALS = 64
_NAMES = (
    *("HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2"),
    *("PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG"),
    *("XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS"),
)
SIGNALS: Mapping[str, int] = {name: number for number, name in enumerate(_NAMES, 1)}
_SIGNALLING = ("kprobe", "kretprobe", "uprobe", "uretprobe", "usdt", "profile", "tracepoint",
               "rawtracepoint", "fentry", "fexit", "software", "hardware")  # fmt: skip


def _check_safety(check: Checking, node: tree.Call) -> None:
    if not check.settings.is_unsafe:
        message = f"{node.name}() is unsafe. To use you need the --unsafe flag"
        raise refuse(node, message)


def _signal(check: Checking, node: tree.Call) -> Type:
    _check_safety(check, node)
    if check.unit.point.kind not in _SIGNALLING:
        kind = check.unit.point.kind
        raise refuse(node, f"{node.name} can not be used with '{kind}' probes")
    argument = node.arguments[0]
    if isinstance(argument, tree.String) or _is_text_parameter(check, argument):
        name = re.sub("^SIG", "", literal_argument(check, node, 0))
        if name not in SIGNALS:
            raise refuse(node, f"{name} is not a valid signal", suggest(name, list(SIGNALS)))
        node.arguments[0] = tree.Integer(argument.start, argument.end, SIGNALS[name])
    type_ = check.infer(node.arguments[0])
    if type_ is not None and type_.kind != "int":
        raise refuse(argument, f"{node.name}() expects a signal, got {spell(type_)}")
    number = check.constant(node.arguments[0])
    if number is not None and not 1 <= number <= _MOST_SIGNALS:
        raise refuse(argument, f"{number} is not a valid signal, allowed range: [1,64]")
    return NONE


def _is_text_parameter(check: Checking, node: tree.Expression) -> bool:
    while isinstance(node, tree.Call) and node.name == "str" and len(node.arguments) == 1:
        node = node.arguments[0]
    return isinstance(node, tree.Parameter) and isinstance(
        check.settings.parameter(node.number), str
    )


def _override(check: Checking, node: tree.Call) -> Type:
    _check_safety(check, node)
    if check.unit.point.kind != "kprobe":
        raise refuse(node, f"override can not be used with '{check.unit.point.kind}' probes")
    check.infer(node.arguments[0])
    return NONE


def _write_user(check: Checking, node: tree.Call) -> Type:
    _check_safety(check, node)
    target, _ = (check.infer(item) for item in node.arguments[:2])
    if target is not None and target.kind not in ("int", "ptr"):
        message = f"write_user() expects a pointer, got {spell(target)}"
        raise refuse(node.arguments[0], message)
    size = check.number(node.arguments[2], "the length of write_user()")
    if not 1 <= size <= check.config.numbers["max_strlen"]:
        raise refuse(node.arguments[2], "write_user() writes from 1 to max_strlen bytes")
    return BOOL


EFFECTS: Mapping[str, tuple[int, int, Infer]] = {
    "signal": (1, 1, _signal), "signal_thread": (1, 1, _signal), "override": (1, 1, _override),
    "write_user": (3, 3, _write_user),
}  # fmt: skip
"""The least and the largest number of arguments, and the function that finds the type."""
