"""Types of calls for symbols, stacks, registers, clocks and cgroups."""

from __future__ import annotations

from collections.abc import Mapping

from purebpf.script import tree
from purebpf.script.checking import Checking
from purebpf.script.functions.arguments import Infer, literal_argument, refuse
from purebpf.script.registers import MACHINES
from purebpf.script.settings import STACK_MODES
from purebpf.script.types import U64, Type, late, pointer, spell

__all__ = ["MACHINE"]

_CLOCKS = ("boot", "monotonic", "tai", "sw_tai")


def _symbol(check: Checking, node: tree.Call) -> Type:
    type_ = check.infer(node.arguments[0])
    if type_ is not None and type_.kind not in ("int", "ptr", "ksym", "usym"):
        message = f"{node.name}() expects an integer or pointer argument, got {spell(type_)}"
        raise refuse(node, message)
    return late(node.name)


def _kaddr(check: Checking, node: tree.Call) -> Type:
    name = literal_argument(check, node, 0)
    node.value = check.host.kernel_symbol(name)
    if node.value is None:
        raise refuse(node, f"Failed to resolve kernel symbol: {name}")
    return pointer("uint64", lambda: U64, "kernel")


def _stack(check: Checking, node: tree.Call) -> Type:
    most, mode = 127, check.config.texts["stack_mode"]
    for item in node.arguments:
        if isinstance(item, tree.Name) and item.name in STACK_MODES:
            mode = item.name
            continue
        most = check.number(item, f"the limit of {node.name}()")
    if not 1 <= most <= 1024:
        raise refuse(node, f"{node.name}([int limit]): limit must be from 1 to 1024, not {most}")
    return late(node.name, min(most, 127), text=mode)


def _in_space(check: Checking, node: tree.Call) -> Type | None:
    type_ = check.infer(node.arguments[0])
    if type_ is None:
        return None
    if type_.kind not in ("int", "ptr"):
        raise refuse(node, f"{node.name}() only supports pointers ({spell(type_)} provided)")
    space = "kernel" if node.name == "kptr" else "user"
    if type_.kind == "int":
        return pointer("void", lambda: Type("void"), space)
    return type_.in_space(space)


def _reg(check: Checking, node: tree.Call) -> Type:
    name, machine = literal_argument(check, node, 0), check.host.machine
    registers = MACHINES.get(machine)
    if registers is None or name not in registers.by_name:
        raise refuse(node, f"'{name}' is not a valid register on this architecture ({machine})")
    if not check.unit.point.has_registers:
        raise refuse(node, f"reg() can not be used with '{check.unit.point.kind}' probes")
    node.value = None
    return U64


def _nsecs(check: Checking, node: tree.Call) -> Type:
    del check
    for item in node.arguments:
        if not isinstance(item, tree.Name):
            raise refuse(item, "nsecs() expects the name of a clock")
        if item.name not in _CLOCKS:
            raise refuse(
                item, f"the clock {item.name} is not supported yet", "boot, monotonic, tai, sw_tai"
            )
    return U64


def _cgroup_path(check: Checking, node: tree.Call) -> Type:
    type_ = check.infer(node.arguments[0])
    if type_ is not None and type_.kind != "int":
        raise refuse(node, f"cgroup_path() expects an integer argument, got {spell(type_)}")
    return late("cgroup", text=literal_argument(check, node, 1) if len(node.arguments) == 2 else "")


def _cgroupid(check: Checking, node: tree.Call) -> Type:
    path = literal_argument(check, node, 0)
    node.value = check.host.cgroup_id(path)
    if node.value is None:
        raise refuse(node, f"cgroupid(): there is no cgroup {path}")
    return U64


MACHINE: Mapping[str, tuple[int, int, Infer]] = {
    "ksym": (1, 1, _symbol), "usym": (1, 1, _symbol), "kaddr": (1, 1, _kaddr),
    "kstack": (0, 2, _stack), "ustack": (0, 2, _stack), "kptr": (1, 1, _in_space),
    "uptr": (1, 1, _in_space), "reg": (1, 1, _reg), "nsecs": (0, 1, _nsecs),
    "cgroup_path": (1, 2, _cgroup_path), "cgroupid": (1, 1, _cgroupid),
}  # fmt: skip
"""The least and the largest number of arguments, and the function that finds the type."""
