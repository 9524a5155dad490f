"""Types of calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from purebpf.script import tree
from purebpf.script.builtins import BUILTINS
from purebpf.script.checking import Checking
from purebpf.script.constants import is_literal, wrap
from purebpf.script.format_string import split_format
from purebpf.script.registers import MACHINES
from purebpf.script.script_error import ScriptError
from purebpf.script.settings import STACK_MODES
from purebpf.script.types import (
    BOOL,
    NONE,
    U64,
    Type,
    integer,
    late,
    pointer,
    spell,
    string,
)
from purebpf.similar import suggest

__all__ = ["MAP_FUNCTIONS", "aggregate_type", "check_call", "is_function"]

MAP_FUNCTIONS: Mapping[str, tuple[int, int]] = {
    "count": (0, 0), "sum": (1, 1), "avg": (1, 1), "min": (1, 1), "max": (1, 1), "stats": (1, 1),
    "hist": (1, 2), "lhist": (4, 4),
}  # fmt: skip
"""Functions that are assigned to a map, and how many arguments they take."""
_MOST_BUCKETS = 1000
_CLOCKS = ("boot", "monotonic")
_LATER = frozenset({
    "signal", "signal_thread", "strstr", "path", "uaddr", "getopt", "tseries",
    "percpu_kaddr", "override", "write_user", "skboutput", "socket_cookie", "unwatch", "assert",
    "static_assert", "fail", "debugf", "container_of", "find", "is_str",
    "is_ptr", "is_array", "is_err", "is_integer", "is_unsigned_integer", "is_literal", "memcmp",
    "str_concat", "strcap", "syscall_name", "dw_ustack", "typeof",
    "typeinfo", "comptime", "kfunc_exist", "kfunc_allowed", "default_str_length",
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
        raise _refuse(node, f"{node.name}() should be directly assigned to a map")
    if node.name in _FUNCTIONS:
        least, most, infer = _FUNCTIONS[node.name]
        _check_count(node, least, most)
        return infer(check, node)
    if node.name == "ppid" and [getattr(x, "name", "") for x in node.arguments] == ["curtask"]:
        node.arguments = []
    if node.name in BUILTINS and not node.arguments:
        return _builtin(check, node)
    if node.name in _LATER:
        raise _refuse(node, f"{node.name}() is not supported yet")
    hint = suggest(node.name, [*_FUNCTIONS, *MAP_FUNCTIONS])
    raise _refuse(node, f"Unknown function: '{node.name}'", hint)


def is_function(name: str) -> bool:
    """Return True for functions, and builtins that can be called."""
    return name in _FUNCTIONS or name in MAP_FUNCTIONS or name in BUILTINS


def aggregate_type(check: Checking, node: tree.Call) -> Type:
    """Return the type of a map to which count(), hist() or another map function is assigned.

    Raises:
        ScriptError: wrong arguments.
    """
    _check_count(node, *MAP_FUNCTIONS[node.name])
    if node.name == "count":
        return Type("count", 8)
    type_ = check.infer(node.arguments[0])
    if type_ is not None and type_.kind not in ("int", "bool", "ptr"):
        message = f"{node.name}() only supports integer arguments ({spell(type_)} provided)"
        raise _refuse(node, message)
    if node.name == "hist":
        bits = 0
        if len(node.arguments) > 1:
            bits = check.number(node.arguments[1], "the bits of hist()")
        if not 0 <= bits <= 5:
            raise _refuse(node, f"hist: bits {bits} must be 0..5")
        return Type("hist", 8, numbers=(bits,))
    if node.name == "lhist":
        return _linear(check, node)
    is_signed = type_ is not None and type_.signed
    return Type(node.name, 8, is_signed)


def _linear(check: Checking, node: tree.Call) -> Type:
    low, high, step = (check.number(item, "lhist() bounds") for item in node.arguments[1:])
    if step <= 0:
        raise _refuse(node, f"lhist() step must be >= 1 ({step} provided)")
    if low > high:
        raise _refuse(
            node, f"lhist() min must be less than max (provided min {low} and max {high})"
        )
    if (high - low) // step > _MOST_BUCKETS:
        raise _refuse(node, f"lhist() too many buckets, must be <= {_MOST_BUCKETS}")
    return Type("lhist", 8, numbers=(low, high, step))


def _refuse(node: tree.Node, message: str, hint: str = "") -> ScriptError:
    return ScriptError(message, node.start, node.end, hint)


def _check_count(node: tree.Call, least: int, most: int) -> None:
    given = len(node.arguments)
    if least <= given <= most:
        return
    words = {0: "no arguments", 1: "one argument", 2: "two arguments"}
    if least == most:
        wanted = words.get(least, f"{least} arguments")
    elif given < least:
        wanted = f"at least {words.get(least, f'{least} arguments')}"
    else:
        wanted = f"at most {words.get(most, f'{most} arguments')}"
    raise _refuse(node, f"{node.name}() requires {wanted} ({given} provided)")


def _literal(check: Checking, node: tree.Call, index: int) -> str:
    """Return an argument that is known before the script runs: a literal, or `str($1)`."""
    argument = node.arguments[index]
    inner = argument
    while isinstance(inner, tree.Call | tree.BlockValue):
        if isinstance(inner, tree.Call) and inner.name == "str" and len(inner.arguments) == 1:
            inner = inner.arguments[0]
        else:
            check.infer(inner)
            block = inner.expansion if isinstance(inner, tree.Call) else inner
            if block is None or block.statements or block.result is None:
                break
            inner = block.result
    if isinstance(inner, tree.Parameter):
        inner = tree.String(argument.start, argument.end,
                            str(check.settings.parameter(inner.number)))  # fmt: skip
    if not isinstance(inner, tree.String):
        raise _refuse(argument, f"{node.name}() expects a string literal")
    node.arguments[index] = inner
    return inner.value


def _builtin(check: Checking, node: tree.Call) -> Type | None:
    """Treat `pid()` as `pid`."""
    name = tree.Name(node.start, node.end, node.name)
    type_ = check.infer(name)
    node.arguments = [name]
    node.name = ""
    node.value = name.value
    return type_


def _printf(check: Checking, node: tree.Call) -> Type:
    types = [check.infer(item) for item in node.arguments[1:]]
    try:
        conversions, _ = split_format(_literal(check, node, 0))
    except ValueError as error:
        raise _refuse(node.arguments[0], f"printf: unknown conversion {error}") from None
    if len(types) != len(conversions):
        side = "not enough" if len(types) < len(conversions) else "too many"
        message = f"{node.name}: {side} arguments for format string ({len(conversions)} expected, "
        raise _refuse(node, f"{message}{len(types)} supplied)")
    for conversion, type_, item in zip(conversions, types, node.arguments[1:], strict=True):
        if type_ is not None and not _fits(conversion.kind, type_):
            message = f"printf: %{conversion.kind} specifier expects a value of another type "
            raise _refuse(item, f"{message}({spell(type_)} supplied)")
    return NONE


def _fits(kind: str, type_: Type) -> bool:
    if type_.kind in ("none", "void", "args", "hist", "lhist"):
        return False
    if kind == "s":
        return True
    if kind in ("r", "rh", "rx"):
        return type_.kind in ("buffer", "string")
    return type_.kind in ("int", "bool", "ptr", "ksym")


def _print(check: Checking, node: tree.Call) -> Type:
    argument = node.arguments[0]
    if isinstance(argument, tree.Map) and argument.key is None:
        info = check.map_info(argument.name)
        for item in node.arguments[1:]:
            if check.number(item, "an argument of print()") < 0:
                raise _refuse(item, "print() expects a positive number")
        if info.value is None and check.is_final:
            raise _refuse(argument, f"Undefined map: {argument.name}")
        return NONE
    if len(node.arguments) > 1:
        raise _refuse(node, "Non-map print() only takes 1 argument, "
                            f"{len(node.arguments)} found")  # fmt: skip
    type_ = check.infer(argument)
    if type_ is not None and type_.kind in ("none", "void", "args"):
        raise _refuse(argument, f"print() can not print a value of type '{spell(type_)}'")
    return NONE


def _map_argument(check: Checking, node: tree.Call) -> tree.Map:
    argument = node.arguments[0]
    if not isinstance(argument, tree.Map):
        raise _refuse(node, f"{node.name}() expects a map to be provided")
    check.map_info(argument.name)
    return argument


def _clear(check: Checking, node: tree.Call) -> Type:
    argument = _map_argument(check, node)
    if argument.key is not None:
        raise _refuse(argument, f"{node.name}() expects a map without a key")
    if check.is_final and check.maps[argument.name].value is None:
        raise _refuse(argument, f"Undefined map: {argument.name}")
    return NONE


def _delete(check: Checking, node: tree.Call) -> Type:
    argument = _map_argument(check, node)
    info = check.maps[argument.name]
    if len(node.arguments) == 2:
        if argument.key is not None:
            raise _refuse(argument, "delete() with two arguments expects a map without a key")
        argument.key, node.arguments = node.arguments[1], [argument]
    elif argument.key is None and info.is_scalar is False:
        raise _refuse(node, "call to delete() with a single argument expects a map without "
                            "explicit keys (scalar map)")  # fmt: skip
    check.check_key(info, argument)
    if info.is_scalar and info.is_aggregate:
        message = "delete() of an aggregate without a key is not supported yet"
        raise _refuse(node, message, "clear() removes its value")
    return BOOL


def _has_key(check: Checking, node: tree.Call) -> Type:
    argument = _map_argument(check, node)
    if argument.key is None:
        argument.key, node.arguments = node.arguments[1], [argument, node.arguments[1]]
    info = check.maps[argument.name]
    if info.is_scalar:
        raise _refuse(node, "call to has_key() expects a map with explicit keys (non-scalar map)")
    check.check_key(info, argument)
    return BOOL


def _len(check: Checking, node: tree.Call) -> Type | None:
    argument = node.arguments[0]
    if isinstance(argument, tree.Map) and argument.key is None:
        info = check.map_info(argument.name)
        if info.is_scalar:
            raise _refuse(node, "call to len() expects a map with explicit keys (non-scalar map)")
        if info.is_histogram:
            raise _refuse(node, "len() of a histogram is not supported yet")
        return U64
    type_ = check.infer(node.arguments[0])
    if type_ is None:
        return None
    if type_.kind == "array":
        node.value = type_.count
        return U64
    raise _refuse(node, f"len() of a value of type '{spell(type_)}' is not supported yet")


def _str(check: Checking, node: tree.Call) -> Type | None:
    longest = check.config.numbers["max_strlen"]
    type_ = check.infer(node.arguments[0])
    if len(node.arguments) == 2:
        check.infer(node.arguments[1])
        length = check.constant(node.arguments[1])
        if length is not None and length < 0:
            raise _refuse(node.arguments[1], "str cannot use negative length")
        if length:
            longest = min(longest, length)
    argument = node.arguments[0]
    if isinstance(argument, tree.Parameter):
        value = check.settings.parameter(argument.number)
        text = str(value) if argument.number <= len(check.settings.parameters) else ""
        return string(min(longest, len(text.encode()) + 1))
    if type_ is None:
        return None
    if type_.kind == "string":
        return string(min(longest, type_.size))
    if type_.kind == "array" and type_.target.size == 1:
        return string(min(longest, type_.size + 1))
    if type_.kind not in ("int", "ptr"):
        message = f"str() expects an integer or a pointer type as first argument ({spell(type_)} "
        raise _refuse(node, f"{message}provided)")
    return string(longest)


def _time(check: Checking, node: tree.Call) -> Type:
    if node.arguments:
        _literal(check, node, 0)
    return NONE


def _strftime(check: Checking, node: tree.Call) -> Type:
    check.infer(node.arguments[1])
    return late("time", text=_literal(check, node, 0))


def _exit(check: Checking, node: tree.Call) -> Type:
    for item in node.arguments:
        check.infer(item)
    return NONE


def _ntop(check: Checking, node: tree.Call) -> Type | None:
    types = [check.infer(item) for item in node.arguments]
    if any(type_ is None for type_ in types):
        return None
    address = types[-1]
    assert address is not None
    if address.kind not in ("int", "array", "string", "struct", "buffer"):
        raise _refuse(node, f"ntop() expects an integer or array argument, got {spell(address)}")
    return late("inet")


def _bswap(check: Checking, node: tree.Call) -> Type | None:
    type_ = check.infer(node.arguments[0])
    if type_ is None:
        return None
    if type_.kind != "int":
        raise _refuse(node, f"bswap() only supports integer arguments ({spell(type_)} provided)")
    size = type_.size
    value = check.constant(node.arguments[0])
    if value is not None and is_literal(node.arguments[0]):
        size = next(size for size in (1, 2, 4, 8) if value < 1 << 8 * size)
    if value is not None:
        data = wrap(value, size, False).to_bytes(size, "little")
        node.value = int.from_bytes(data, "big")
    return integer(size, False)


def _symbol(check: Checking, node: tree.Call) -> Type:
    type_ = check.infer(node.arguments[0])
    if type_ is not None and type_.kind not in ("int", "ptr", "ksym", "usym"):
        message = f"{node.name}() expects an integer or pointer argument, got {spell(type_)}"
        raise _refuse(node, message)
    return late(node.name)


def _kaddr(check: Checking, node: tree.Call) -> Type:
    name = _literal(check, node, 0)
    node.value = check.host.kernel_symbol(name)
    if node.value is None:
        raise _refuse(node, f"Failed to resolve kernel symbol: {name}")
    return pointer("uint64", lambda: U64, "kernel")


def _stack(check: Checking, node: tree.Call) -> Type:
    most, mode = 127, check.config.texts["stack_mode"]
    for item in node.arguments:
        if isinstance(item, tree.Name) and item.name in STACK_MODES:
            mode = item.name
            continue
        most = check.number(item, f"the limit of {node.name}()")
    if not 1 <= most <= 1024:
        raise _refuse(node, f"{node.name}([int limit]): limit must be from 1 to 1024, not {most}")
    return late(node.name, min(most, 127), text=mode)


def _unsafe(check: Checking, node: tree.Call) -> Type:
    if not check.settings.is_unsafe:
        raise _refuse(node, f"{node.name}() is an unsafe function being used in safe mode")
    return _printf(check, node)


def _buf(check: Checking, node: tree.Call) -> Type | None:
    type_ = check.infer(node.arguments[0])
    size = check.config.numbers["max_strlen"]
    if len(node.arguments) == 2:
        check.infer(node.arguments[1])
        length = check.constant(node.arguments[1])
        if length is not None:
            if length < 0:
                raise _refuse(node.arguments[1], "buf cannot use negative length")
            size = min(size, length)
    elif type_ is not None:
        if type_.kind not in ("array", "string"):
            raise _refuse(node, "buf() expects a length argument for non-array type "
                                f"{spell(type_)}")  # fmt: skip
        size = min(size, type_.size)
    return Type("buffer", max(1, size))


def _macaddr(check: Checking, node: tree.Call) -> Type | None:
    type_ = check.infer(node.arguments[0])
    if type_ is None:
        return None
    if type_.size < 6 or type_.kind not in ("array", "string", "int", "ptr"):
        raise _refuse(node, "macaddr() argument must be a pointer or an array of 6 bytes")
    return late("mac")


def _pton(check: Checking, node: tree.Call) -> Type:
    from ipaddress import ip_address

    text = _literal(check, node, 0)
    try:
        address = ip_address(text)
    except ValueError:
        message = f"pton() expects an string argument of an IPv4/IPv6 address, got {text}"
        raise _refuse(node, message) from None
    size = len(address.packed)
    return Type("array", size, count=size, items=(integer(1, False),))


def _strncmp(check: Checking, node: tree.Call) -> Type:
    _strings(check, node)
    check.number(node.arguments[2], "the length of strncmp()")
    return U64


def _strings(check: Checking, node: tree.Call) -> None:
    for item in node.arguments[:2]:
        type_ = check.infer(item)
        if type_ is not None and type_.kind != "string":
            message = f"{node.name}() expects strings, not a value of type '{spell(type_)}'"
            raise _refuse(item, message)


def _strcontains(check: Checking, node: tree.Call) -> Type:
    _strings(check, node)
    kernel = check.world.kernel
    found = kernel.function("bpf_strstr") if kernel is not None else None
    if found is None:
        raise _refuse(node, "strcontains() needs the kernel function bpf_strstr (Linux 6.17)")
    return BOOL


def _strerror(check: Checking, node: tree.Call) -> Type:
    check.infer(node.arguments[0])
    return late("strerror")


def _nsecs(check: Checking, node: tree.Call) -> Type:
    del check
    for item in node.arguments:
        if not isinstance(item, tree.Name):
            raise _refuse(item, "nsecs() expects the name of a clock")
        if item.name not in _CLOCKS:
            raise _refuse(item, f"the clock {item.name} is not supported yet", "boot, monotonic")
    return U64


def _in_space(check: Checking, node: tree.Call) -> Type | None:
    type_ = check.infer(node.arguments[0])
    if type_ is None:
        return None
    if type_.kind not in ("int", "ptr"):
        raise _refuse(node, f"{node.name}() only supports pointers ({spell(type_)} provided)")
    space = "kernel" if node.name == "kptr" else "user"
    if type_.kind == "int":
        return pointer("void", lambda: Type("void"), space)
    return type_.in_space(space)


def _reg(check: Checking, node: tree.Call) -> Type:
    name, machine = _literal(check, node, 0), check.host.machine
    registers = MACHINES.get(machine)
    if registers is None or name not in registers.by_name:
        raise _refuse(node, f"'{name}' is not a valid register on this architecture ({machine})")
    if not check.unit.point.has_registers:
        raise _refuse(node, f"reg() can not be used with '{check.unit.point.kind}' probes")
    node.value = None
    return U64


def _join(check: Checking, node: tree.Call) -> Type:
    if not check.settings.is_unsafe:
        raise _refuse(node, "join() is an unsafe function being used in safe mode")
    type_ = check.infer(node.arguments[0])
    if type_ is not None and type_.kind not in ("int", "ptr"):
        raise _refuse(node, f"join() expects a pointer argument, got {spell(type_)}")
    if len(node.arguments) == 2:
        _literal(check, node, 1)
    return NONE


def _cgroup_path(check: Checking, node: tree.Call) -> Type:
    type_ = check.infer(node.arguments[0])
    if type_ is not None and type_.kind != "int":
        raise _refuse(node, f"cgroup_path() expects an integer argument, got {spell(type_)}")
    return late("cgroup", text=_literal(check, node, 1) if len(node.arguments) == 2 else "")


def _cgroupid(check: Checking, node: tree.Call) -> Type:
    path = _literal(check, node, 0)
    node.value = check.host.cgroup_id(path)
    if node.value is None:
        raise _refuse(node, f"cgroupid(): there is no cgroup {path}")
    return U64


def _strlen(check: Checking, node: tree.Call) -> Type:
    type_ = check.infer(node.arguments[0])
    if type_ is not None and type_.kind != "string":
        raise _refuse(node, f"strlen() expects a string, got {spell(type_)}")
    return U64


def _signal_name(check: Checking, node: tree.Call) -> Type:
    check.infer(node.arguments[0])
    return late("signal")


_Infer = Callable[[Checking, tree.Call], Type | None]
_FUNCTIONS: Mapping[str, tuple[int, int, _Infer]] = {
    "printf": (1, 64, _printf), "print": (1, 3, _print), "clear": (1, 1, _clear),
    "zero": (1, 1, _clear), "delete": (1, 2, _delete), "has_key": (2, 2, _has_key),
    "len": (1, 1, _len), "str": (1, 2, _str), "time": (0, 1, _time),
    "strftime": (2, 2, _strftime), "exit": (0, 1, _exit), "ntop": (1, 2, _ntop),
    "bswap": (1, 1, _bswap), "ksym": (1, 1, _symbol), "usym": (1, 1, _symbol),
    "kaddr": (1, 1, _kaddr), "kstack": (0, 2, _stack), "ustack": (0, 2, _stack),
    "nsecs": (0, 1, _nsecs), "kptr": (1, 1, _in_space), "uptr": (1, 1, _in_space),
    "reg": (1, 1, _reg), "errorf": (1, 64, _printf), "warnf": (1, 64, _printf),
    "cat": (1, 64, _printf), "system": (1, 64, _unsafe), "buf": (1, 2, _buf),
    "macaddr": (1, 1, _macaddr), "pton": (1, 1, _pton), "strncmp": (3, 3, _strncmp),
    "join": (1, 2, _join), "cgroup_path": (1, 2, _cgroup_path), "cgroupid": (1, 1, _cgroupid),
    "strlen": (1, 1, _strlen), "signal_name": (1, 1, _signal_name),
    "strcontains": (2, 2, _strcontains), "strerror": (1, 1, _strerror),
}  # fmt: skip
