"""Types of the builtins: names such as `pid`, `comm`, `args`, `arg0`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from purebpf.late_pattern import compile_later
from purebpf.script import tree
from purebpf.script.checking import Checking
from purebpf.script.function_arguments import function_fields, raw_fields, result_type
from purebpf.script.program_types import find_parameters, program_types
from purebpf.script.registers import MACHINES
from purebpf.script.script_error import ScriptError
from purebpf.script.tracepoint_fields import RecordField, read_fields
from purebpf.script.types import BOOL, U32, U64, Member, Type, integer, late, pointer, string

__all__ = ["BUILTINS", "COMM_SIZE", "builtin_type"]

COMM_SIZE = 16
"""The bytes of a thread's name, with its NUL (TASK_COMM_LEN)."""
_ARGUMENT = compile_later(r"arg([0-9]|1[01])")
_SPECIAL = ("begin", "end")
_PLAIN: Mapping[str, Type] = {
    "pid": U32, "tid": U32, "initial pid": U32, "initial tid": U32,
    "uid": U32, "gid": U32, "cpu": U32, "ppid": U32, "nsecs": U64,
    "elapsed": U64, "rand": U32, "cgroup": U64, "numaid": U32, "jiffies": U64, "ncpus": U64,
    "leader_tid": U32, "cpid": U32, "has_cpid": BOOL, "comm": string(COMM_SIZE),
    "pcomm": string(COMM_SIZE), "leader_comm": string(COMM_SIZE), "username": late("username"),
    "probe": late("probe"), "probetype": string(16), "kstack": late("kstack", 127),
    "ustack": late("ustack", 127), "usermode": U64,
}  # fmt: skip
BUILTINS = (*_PLAIN, "args", "curtask", "ctx", "func", "retval",
            *(f"arg{index}" for index in range(12)))  # fmt: skip
"""All builtins."""


def builtin_type(check: Checking, node: tree.Name) -> Type | None:
    """Return the type of a builtin, None for other names.

    Raises:
        ScriptError: it cannot be used at this attach point.
    """
    name, point = node.name, check.unit.point
    if name in _PLAIN:
        if name in ("cpid", "has_cpid"):
            node.value = check.settings.child if name == "cpid" else int(check.settings.child > 0)
        elif name == "ncpus":
            if not check.host.cpus:
                raise _refuse(node, "the number of CPUs of the machine is not known")
            node.value = check.host.cpus
        elif name == "usermode" and point.kind in (*_SPECIAL, "uprobe", "uretprobe", "usdt"):
            node.value = 1
        elif name == "usermode" and point.kind in ("kprobe", "kretprobe", "fentry", "fexit"):
            node.value = 0
        elif name == "usermode" and point.kind not in ("profile", "interval"):
            raise _refuse(node, f'usermode is not available for "{point.kind}" probes')
        if name in ("kstack", "ustack"):
            return late(name, 127, text=check.config.texts["stack_mode"])
        return _PLAIN[name]
    if name == "curtask":
        task = check.world.named("struct task_struct")
        return pointer("struct task_struct", lambda: task or Type("void"), "kernel")
    if name == "args":
        return _args(check, node)
    if name == "ctx":
        return _context(check)
    if name == "func":
        if point.has_registers or point.kind in ("fentry", "fexit"):
            return late("ksym") if point.space == "kernel" else late("usym")
        raise _refuse(node, f"The func builtin can not be used with '{point.kind}' probes")
    if name == "retval":
        return _retval(check, node)
    if (match := _ARGUMENT.fullmatch(name)) is not None:
        return _argument(check, node, int(match[1]))
    return None


def _context(check: Checking) -> Type:
    """Return the type of the context: an iterator's structure, else a pointer without a type."""
    point = check.unit.point
    label = f"struct bpf_iter__{point.name.partition(':')[2]}" if point.kind == "iter" else "void"
    found = check.world.named(label) or Type("void")
    return pointer(label, lambda: found, "kernel")


def _refuse(node: tree.Node, message: str) -> ScriptError:
    return ScriptError(message, node.start, node.end)


def _check_machine(check: Checking, node: tree.Node) -> None:
    if check.host.machine not in MACHINES:
        machine = check.host.machine
        raise _refuse(node, f"registers of functions are not supported on {machine} yet")


def _argument(check: Checking, node: tree.Name, number: int) -> Type:
    kind = check.unit.point.kind
    if kind == "rawtracepoint":
        return U64
    if kind == "usdt":
        return _static_argument(check, node, number)
    if kind not in ("kprobe", "uprobe"):
        raise _refuse(node, f"The {node.name} builtin can not be used with '{kind}' probes")
    _check_machine(check, node)
    registers = MACHINES[check.host.machine]
    if number >= len(registers.arguments) and kind == "kprobe" and number > 9:
        raise _refuse(node, f"{check.host.machine} doesn't support {node.name}")
    return U64


def _static_argument(check: Checking, node: tree.Name, number: int) -> Type:
    """Return the type of an argument of a static probe."""
    point = check.unit.point
    if number >= len(point.arguments):
        count = len(point.arguments)
        raise _refuse(node, f"{point.name} has {count} arguments, and no {node.name}")
    from purebpf.symbols.usdt_arguments import UnknownArgument

    argument = point.arguments[number]
    if isinstance(argument, UnknownArgument):
        raise _refuse(node, f"{node.name} of {point.name} cannot be read: {argument.problem}")
    return integer(argument.size, argument.signed)


def _retval(check: Checking, node: tree.Name) -> Type:
    point = check.unit.point
    if point.kind == "fexit":
        type_, check.unit.result_place = result_type(check.world, point, node)
        return type_
    if point.kind not in ("kretprobe", "uretprobe"):
        raise _refuse(node, f"The retval builtin can not be used with '{point.kind}' probes")
    _check_machine(check, node)
    return U64


def _args(check: Checking, node: tree.Name) -> Type:
    unit = check.unit
    if unit.fields is None:
        if unit.point.kind == "tracepoint":
            _, category, event = unit.point.name.split(":", 2)
            text = check.host.tracepoint_format(category, event)
            longest = check.config.numbers["max_strlen"]
            unit.fields = read_fields(text, check.world, unit.point.space, longest)
        elif unit.point.kind in ("fentry", "fexit"):
            unit.fields = function_fields(check.world, unit.point, node)
        elif unit.point.kind == "rawtracepoint":
            unit.fields = raw_fields(check.world, unit.point, node)
        elif unit.point.kind == "uprobe":
            unit.fields = _program_fields(check, node)
        else:
            raise _refuse(node, f"The args builtin can not be used with '{unit.point.kind}' probes")
    if unit.point.kind == "tracepoint":
        return Type("args", integer(8, False).size)
    return Type("args", 8 * len(unit.fields), layout=_Words(unit.fields))


def _program_fields(check: Checking, node: tree.Name) -> dict[str, RecordField]:
    """Return the parameters of a function of a program, by its DWARF.

    Raises:
        ScriptError: there is none.
    """
    point = check.unit.point
    types = program_types(point, check.host)
    if types is None:
        message = f"Cannot read the arguments of {point.name}: no DWARF describes the function"
        hint = "compile with -g, install its debug file, or use arg0, arg1"
        raise ScriptError(message, node.start, node.end, hint)
    if types.why_no_parameters:
        raise _refuse(node, f"Cannot read the arguments of {point.name}: {types.why_no_parameters}")
    _check_machine(check, node)
    return find_parameters(types, point, MACHINES[check.host.machine].arguments)


class _Words:
    """The arguments of a function as the members of a structure: each is a word."""

    def __init__(self, fields: Mapping[str, RecordField]) -> None:
        self._members = {name: Member(item.offset, item.type) for name, item in fields.items()}

    def member(self, name: str) -> Member | None:
        """Return an argument by its name."""
        return self._members.get(name)

    def members(self) -> Sequence[tuple[str, Member]]:
        """Return the names and the arguments."""
        return list(self._members.items())
