"""Types of calls for symbols, stacks, registers, clocks and cgroups."""

from __future__ import annotations

from collections.abc import Mapping

from purebpf.script import tree
from purebpf.script.checking import Checking
from purebpf.script.functions.arguments import Infer, literal_argument, refuse
from purebpf.script.registers import MACHINES
from purebpf.script.settings import STACK_MODES
from purebpf.script.types import U64, Type, integer, late, pointer, spell, string
from purebpf.script.user_points import find_variable

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


def _path(check: Checking, node: tree.Call) -> Type | None:
    """Check `path()`: the kernel takes only pointers that come from the context."""
    kind, place = check.unit.point.kind, node.arguments[0]
    type_ = check.infer(place)
    if kind not in ("iter", "fentry", "fexit"):
        raise refuse(node, f"path() can not be used with '{kind}' probes")
    target = type_.target if type_ is not None and type_.kind == "ptr" else type_
    if target is not None and target.name != "struct path":
        raise refuse(place, f"path() expects a struct path, got {spell(target)}")
    if not _is_from_context(place):
        raise refuse(place, "path() expects members of args or ctx, without casts and variables")
    longest = check.config.numbers["max_strlen"] + 1
    if len(node.arguments) == 2:
        longest = check.number(node.arguments[1], "the size of path()")
        if longest < 1:
            raise refuse(node.arguments[1], "path() expects a positive size")
    return string(longest)


def _socket_cookie(check: Checking, node: tree.Call) -> Type | None:
    """Check `socket_cookie()`: the kernel takes only pointers that come from the context."""
    kind, place = check.unit.point.kind, node.arguments[0]
    type_ = check.infer(place)
    if kind not in ("fentry", "fexit"):
        raise refuse(node, f"socket_cookie() can not be used with '{kind}' probes")
    if type_ is None:
        return None
    target = type_.target if type_.kind == "ptr" else type_
    if type_.kind != "ptr" or target.name not in ("struct sock", "struct socket"):
        message = (
            f"socket_cookie() only supports pointer to 'struct sock' ({spell(type_)} provided)"
        )
        raise refuse(place, message)
    if not _is_from_context(place):
        message = "socket_cookie() expects members of args, without casts and variables"
        raise refuse(place, message)
    return U64


def _is_from_context(node: tree.Expression) -> bool:
    while isinstance(node, tree.Field | tree.AddressOf):
        node = node.base if isinstance(node, tree.Field) else node.operand
    return isinstance(node, tree.Name) and node.name in ("args", "ctx")


def _uaddr(check: Checking, node: tree.Call) -> Type:
    name, point = literal_argument(check, node, 0), check.unit.point
    if point.kind not in ("uprobe", "uretprobe", "usdt"):
        raise refuse(node, f"uaddr() can not be used with '{point.kind}' probes")
    found = find_variable(point, name, check.host)
    if found is None:
        raise refuse(node, f"Could not resolve symbol: {name}")
    size = found.size if found.size in (1, 2, 4, 8) else 8
    return pointer(f"uint{8 * size}", lambda: integer(size, False), "user")


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
    "uaddr": (1, 1, _uaddr), "path": (1, 2, _path), "socket_cookie": (1, 1, _socket_cookie),
    "cgroup_path": (1, 2, _cgroup_path), "cgroupid": (1, 1, _cgroupid),
}  # fmt: skip
"""The least and the largest number of arguments, and the function that finds the type."""
