"""Attach points: from the text in a script to the places that it means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from purebpf.btf.types.kinds import Kind
from purebpf.btf.types.parse import Btf, ids_of
from purebpf.late_pattern import compile_later
from purebpf.script import tree
from purebpf.script.functions.effects import SIGNALS
from purebpf.script.host import Host
from purebpf.script.point import MissingProbeError, Point, is_wild, match_names, refuse_point
from purebpf.script.script_error import ScriptError
from purebpf.similar import suggest

__all__ = ["ALIASES", "HARDWARE", "SOFTWARE", "Point", "described_functions", "expand",
           "iterators", "raw_tracepoints"]  # fmt: skip

ALIASES: Mapping[str, str] = {
    "k": "kprobe", "kr": "kretprobe", "t": "tracepoint", "u": "uprobe", "ur": "uretprobe",
    "i": "interval", "p": "profile", "s": "software", "h": "hardware", "BEGIN": "begin",
    "END": "end", "rt": "rawtracepoint", "f": "fentry", "fr": "fexit", "kfunc": "fentry",
    "kretfunc": "fexit", "U": "usdt", "it": "iter", "w": "watchpoint", "BENCH": "bench",
}  # fmt: skip
_LATER = frozenset({"test", "asyncwatchpoint"})
_UNITS_NS: Mapping[str, int] = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_CODE_SIZE = 8
"""sizeof(long): the length of a breakpoint on code (include/uapi/linux/hw_breakpoint.h)."""
_HIDDEN = ("rcu_", "__ftrace_invalid_address__")
"""Functions that patterns do not mean: a probe there stops the kernel, or is none."""
_UNLIKELY = (
    'is not traceable (either non-existing, inlined, or marked as "notrace"); '
    "attaching to it will likely fail"
)
_DURATION = compile_later(r"(\d+)(ns|us|ms|s|m|h)?")
SOFTWARE: Mapping[str, tuple[str, int]] = {
    "alignment-faults": ("alignment-faults", 1), "bpf-output": ("bpf-output", 1),
    "context-switches": ("context-switches", 1000), "cs": ("context-switches", 1000),
    "cpu-clock": ("cpu-clock", 1000000), "cpu": ("cpu-clock", 1000000),
    "cpu-migrations": ("cpu-migrations", 1), "dummy": ("dummy", 1),
    "emulation-faults": ("emulation-faults", 1), "major-faults": ("major-faults", 1),
    "minor-faults": ("minor-faults", 100), "page-faults": ("page-faults", 100),
    "faults": ("page-faults", 100), "task-clock": ("task-clock", 1),
}  # fmt: skip
HARDWARE: Mapping[str, tuple[str, int]] = {
    "backend-stalls": ("stalled-cycles-backend", 1000000),
    "branch-instructions": ("branches", 100000), "branches": ("branches", 100000),
    "bus-cycles": ("bus-cycles", 100000), "cache-misses": ("cache-misses", 1000000),
    "cache-references": ("cache-references", 1000000), "cpu-cycles": ("cycles", 1000000),
    "cycles": ("cycles", 1000000), "frontend-stalls": ("stalled-cycles-frontend", 1000000),
    "instructions": ("instructions", 1000000), "ref-cycles": ("ref-cycles", 1000000),
}  # fmt: skip


def expand(node: tree.Point, host: Host) -> list[Point]:
    """Return the places that an attach point means.

    Raises:
        MissingProbeError: no such place.
        ScriptError: a kind that is unknown or not supported, or a malformed point.
    """
    kind, _, rest = node.text.partition(":")
    kind = ALIASES.get(kind.strip(), kind.strip())
    if kind in _LATER:
        raise refuse_point(node, f"{kind} probes are not supported yet")
    make = _MAKERS.get(kind)
    if make is None:
        hint = suggest(kind, list(_MAKERS))
        raise ScriptError(f"Invalid probe type: {kind}", node.start, node.end, hint)
    return make(node, kind, rest, host)


def _special(node: tree.Point, kind: str, rest: str, host: Host) -> list[Point]:
    del host
    if rest:
        raise refuse_point(node, f"{kind} probe type requires 0 arguments, found 1")
    return [Point(kind, kind, "raw_tp")]


def _benchmark(node: tree.Point, kind: str, rest: str, host: Host) -> list[Point]:
    del host
    if not rest:
        raise refuse_point(node, "bench probes need a name: bench:NAME")
    return [Point(kind, f"{kind}:{rest}", "xdp", target=rest)]


def _own_signal(node: tree.Point, kind: str, rest: str, host: Host) -> list[Point]:
    del host
    word, _, name = rest.partition(":")
    if word != "signal" or not name:
        raise refuse_point(node, "self probes need a signal: self:signal:SIGUSR1")
    if name.removeprefix("SIG") not in SIGNALS or name in ("SIGKILL", "SIGSTOP"):
        names = [f"SIG{label}" for label in SIGNALS]
        message = f"{name} is not a signal that a process can catch"
        raise refuse_point(node, message, suggest(name, names))
    label = f"SIG{name.removeprefix('SIG')}"
    return [Point(kind, f"{kind}:{rest}", "raw_tp", target=label)]


def _timer(node: tree.Point, kind: str, rest: str, host: Host) -> list[Point]:
    del host
    parts = rest.split(":")
    name = f"{kind}:{rest}"
    if len(parts) == 1:
        match = _DURATION.fullmatch(parts[0])
        if match is None:
            raise refuse_point(node, f"{kind} needs a rate, such as {kind}:hz:99 or {kind}:s:1")
        scale = {**_UNITS_NS, "m": 60 * 10**9, "h": 3600 * 10**9}[match[2] or "ns"]
        period = int(match[1]) * scale
        if period % 1000 == 0:
            name = f"{kind}:us:{period // 1000}"
        return [_sampled(node, kind, name, "cpu-clock", period)]
    if len(parts) != 2 or not parts[1].isdecimal():
        raise refuse_point(node, f"Invalid rate of {kind} probe: {rest}")
    unit, number = parts[0], int(parts[1])
    if unit == "hz":
        if number < 1:
            raise refuse_point(node, f"{kind} frequency must be positive")
        return [Point(kind, name, "perf_event", event="cpu-clock", frequency=number)]
    if unit not in _UNITS_NS:
        raise refuse_point(node, f"{unit} is not an accepted unit", "hz, s, ms, us, ns")
    return [_sampled(node, kind, name, "cpu-clock", number * _UNITS_NS[unit])]


def _sampled(node: tree.Point, kind: str, name: str, event: str, period: int) -> Point:
    if period < 1 or period >= 1 << 63:
        raise refuse_point(node, f"Invalid period of {kind} probe: {period}")
    return Point(kind, name, "perf_event", event=event, period=period)


def _perf(node: tree.Point, kind: str, rest: str, host: Host) -> list[Point]:
    del host
    table = SOFTWARE if kind == "software" else HARDWARE
    name, colon, count = rest.partition(":")
    if name not in table:
        raise refuse_point(node, f"Unknown {kind} probe: {name}", suggest(name, list(table)))
    event, usual = table[name]
    if colon:
        try:
            usual = int(float(count)) if "e" in count else int(count, 0)
        except (ValueError, OverflowError):
            raise refuse_point(node, f"Invalid count of {kind} probe: {count}") from None
    return [_sampled(node, kind, f"{kind}:{rest}", event, usual)]


def _tracepoint(node: tree.Point, kind: str, rest: str, host: Host) -> list[Point]:
    category, _, event = rest.partition(":")
    if not category or not event:
        raise refuse_point(node, "tracepoint probe must have a category and an event")
    wanted = f"{category}:{event}"
    names = match_names(wanted, host.tracepoints()) if is_wild(wanted) else [wanted]
    if not is_wild(wanted) and not host.tracepoint_format(category, event):
        raise MissingProbeError(node, kind, wanted, suggest(wanted, host.tracepoints()))
    return [Point(kind, f"{kind}:{name}", f"tracepoint/{name.replace(':', '/')}") for name in names]


def _raw_tracepoint(node: tree.Point, kind: str, rest: str, host: Host) -> list[Point]:
    event = rest.rpartition(":")[2]
    if not event:
        raise MissingProbeError(node, kind, rest)
    matches = match_names(event, raw_tracepoints(host)) if is_wild(event) else [event]
    module = rest.rpartition(":")[0] or "vmlinux"
    module = "vmlinux" if is_wild(module) else module
    return [Point(kind, f"{kind}:{module}:{name}", f"raw_tp/{name}") for name in matches]


def raw_tracepoints(host: Host) -> list[str]:
    """List the raw tracepoints by the kernel's types; by the tracepoints if it has none."""
    btf = host.btf()
    start = "btf_trace_"
    names = {name.removeprefix(start) for name in _typedefs(btf) if name.startswith(start)}
    return sorted(names or {name.partition(":")[2] for name in host.tracepoints()})


def _typedefs(btf: Btf | None) -> Iterator[str]:
    for type_id in ids_of(btf, Kind.TYPEDEF) if btf is not None else ():
        assert btf is not None
        yield btf.name(type_id)


def _kernel_function(node: tree.Point, kind: str, rest: str, host: Host) -> list[Point]:
    module, _, function = rest.rpartition(":")
    if not function:
        raise refuse_point(node, f"{kind} probe type requires a function")
    known = host.functions_of_modules(module) if module else host.kernel_functions()
    if known is None:
        message = f"specified module {module} in probe {kind}:{rest} is not loaded."
        raise refuse_point(node, message)
    is_described = kind in ("fentry", "fexit")
    if not is_described and (address := _address(function)) is not None:
        return [Point(kind, f"{kind}:{address}", kind, function)]
    if is_wild(function):
        names = match_names(function, [name for name in known if not name.startswith(_HIDDEN)])
        described = set(described_functions(host)) if is_described else set(names)
        names = [name for name in names if name in described]
    else:
        names = [function]
        if is_described:
            _check_described(node, kind, rest, host)
        elif host.knows_functions() and not _is_listed(function, known, host):
            forced = _traced_point(kind, module, function)
            raise MissingProbeError(node, kind, rest, f"WARNING: {function} {_UNLIKELY}", forced)
    return [_traced_point(kind, module, name) for name in names]


def _address(text: str) -> int | None:
    """Return the number that a text is, if it is one."""
    try:
        return int(text, 0)
    except ValueError:
        return None


def _is_listed(function: str, known: Sequence[str], host: Host) -> bool:
    """Return True if a function can be traced, perhaps by another name of the same code."""
    name = function.partition("+")[0]
    return name in known or any(other in known for other in host.kernel_aliases(name))


def _traced_point(kind: str, module: str, name: str) -> Point:
    prefix = f"{module}:" if module and not is_wild(module) else ""
    if kind not in ("kprobe", "kretprobe"):
        return Point(kind, f"{kind}:{prefix}{name}", f"{kind}/{name}")
    return Point(kind, f"{kind}:{prefix}{name}", kind, f"{prefix.removeprefix('vmlinux:')}{name}")


def _check_described(node: tree.Point, kind: str, rest: str, host: Host) -> None:
    btf, name = host.btf(), rest.rpartition(":")[2]
    if btf is not None and not btf.find(name, Kind.FUNC):
        raise MissingProbeError(node, kind, rest)


def described_functions(host: Host) -> list[str]:
    """List the functions that can be traced and whose types are known: for fentry and fexit."""
    btf = host.btf()
    known = {btf.name(type_id) for type_id in ids_of(btf, Kind.FUNC)} if btf is not None else set()
    return sorted(known & set(host.kernel_functions()))


def _iterator(node: tree.Point, kind: str, rest: str, host: Host) -> list[Point]:
    name, pin, _ = rest.partition(":")
    if not name or is_wild(rest):
        raise refuse_point(node, "iter probes need a name without wildcards: iter:task")
    if pin:
        message = "iter probes that are pinned are not supported: their output is not a file's"
        raise refuse_point(node, message)
    names = iterators(host)
    if name not in names:
        message = f"iter {name} not available for your kernel version."
        raise refuse_point(node, message, suggest(name, names))
    return [Point(kind, f"{kind}:{name}", f"iter/{name}")]


def iterators(host: Host) -> list[str]:
    """List the kernel's iterators by its types; nothing if it has none."""
    btf, start = host.btf(), "bpf_iter__"
    found = ids_of(btf, Kind.STRUCT) if btf is not None else ()
    names = {btf.name(type_id) for type_id in found} if btf is not None else set[str]()
    return sorted(name.removeprefix(start) for name in names if name.startswith(start))


def _watchpoint(node: tree.Point, kind: str, rest: str, host: Host) -> list[Point]:
    del host
    parts = rest.split(":")
    if len(parts) != 3:
        raise refuse_point(node, f"{kind} needs an address, a length and a mode: 0x1000:8:w")
    address, length, mode = parts
    try:
        number = int(address, 0)
    except ValueError:
        raise refuse_point(node, f"Invalid function/address argument: {address}") from None
    if length not in ("1", "2", "4", "8"):
        raise refuse_point(node, f"Invalid length of {kind} probe: {length}", "1, 2, 4, 8")
    letters = set(mode)
    if not mode or len(letters) != len(mode) or letters not in ({"r", "w"}, {"w"}, {"x"}):
        raise refuse_point(node, f"invalid {kind} mode: {mode}", "w, rw, x")
    if letters == {"x"} and length != "1":
        raise refuse_point(node, f"{kind}: a length of 1 is needed for the mode x")
    size = _CODE_SIZE if letters == {"x"} else length
    event = f"mem:{number:#x}/{size}:{''.join(sorted(letters))}"
    return [Point(kind, f"{kind}:{rest}", "perf_event", event=event, period=1)]


def _of_programs(node: tree.Point, kind: str, rest: str, host: Host) -> list[Point]:
    """Return points in programs and libraries."""
    from purebpf.script.user_points import static_points, user_functions

    return (static_points if kind == "usdt" else user_functions)(node, kind, rest, host)


_MAKERS = {
    "begin": _special, "end": _special, "interval": _timer, "profile": _timer,
    "tracepoint": _tracepoint, "kprobe": _kernel_function, "kretprobe": _kernel_function,
    "fentry": _kernel_function, "fexit": _kernel_function, "uprobe": _of_programs,
    "uretprobe": _of_programs, "usdt": _of_programs, "software": _perf, "hardware": _perf,
    "rawtracepoint": _raw_tracepoint, "self": _own_signal,
    "bench": _benchmark, "iter": _iterator, "watchpoint": _watchpoint,
}  # fmt: skip
