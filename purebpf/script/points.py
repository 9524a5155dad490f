"""Attach points: from the text in a script to the places that it means."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from purebpf.script import tree
from purebpf.script.host import Host
from purebpf.script.script_error import ScriptError
from purebpf.similar import suggest

__all__ = ["ALIASES", "HARDWARE", "SOFTWARE", "Point", "expand"]

ALIASES: Mapping[str, str] = {
    "k": "kprobe", "kr": "kretprobe", "t": "tracepoint", "u": "uprobe", "ur": "uretprobe",
    "i": "interval", "p": "profile", "s": "software", "h": "hardware", "BEGIN": "begin",
    "END": "end", "rt": "rawtracepoint", "f": "fentry", "fr": "fexit", "kfunc": "fentry",
    "kretfunc": "fexit", "U": "usdt", "it": "iter", "w": "watchpoint",
}  # fmt: skip
_LATER = frozenset({"usdt", "iter", "watchpoint", "self", "test", "bench", "asyncwatchpoint"})
_UNITS_NS: Mapping[str, int] = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_DURATION = re.compile(r"(\d+)(ns|us|ms|s|m|h)?")
_WILD = re.compile(r"[*?\[]")
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


@dataclass(frozen=True, slots=True)
class Point:
    """One place to attach a program.

    Attributes:
        kind: as the language calls it: "tracepoint".
        name: as `probe` shows it: "tracepoint:sched:sched_switch".
        section: the kind of program, as in SEC().
        target: the argument for attaching, "" if the section has it.
        event: the perf event of a sampled point.
        period: sample once every so many counts; of time, in ns.
        frequency: samples a second; 0 if there is a period.
    """

    kind: str
    name: str
    section: str
    target: str = ""
    event: str = ""
    period: int = 0
    frequency: int = 0

    @property
    def space(self) -> str:
        """The memory that pointers without a known origin refer to: "kernel" or "user"."""
        is_user = self.kind in ("uprobe", "uretprobe")
        return "user" if is_user or self.name.startswith("tracepoint:syscalls:") else "kernel"

    @property
    def has_registers(self) -> bool:
        """Return True if the context is `struct pt_regs` of a function."""
        return self.kind in ("kprobe", "kretprobe", "uprobe", "uretprobe")


def expand(node: tree.Point, host: Host) -> list[Point]:
    """Return the places that an attach point means.

    Raises:
        ScriptError: a kind that is unknown or not supported, a malformed point, or no such place.
    """
    kind, _, rest = node.text.partition(":")
    kind = ALIASES.get(kind.strip(), kind.strip())
    if kind in _LATER:
        raise _refuse(node, f"{kind} probes are not supported yet")
    make = _MAKERS.get(kind)
    if make is None:
        hint = suggest(kind, list(_MAKERS))
        raise ScriptError(f"Invalid probe type: {kind}", node.start, node.end, hint)
    return make(node, kind, rest, host)


def _refuse(node: tree.Point, message: str, hint: str = "") -> ScriptError:
    return ScriptError(message, node.start, node.end, hint)


def _special(node: tree.Point, kind: str, rest: str, host: Host) -> list[Point]:
    del host
    if rest:
        raise _refuse(node, f"{kind} probe type requires 0 arguments, found 1")
    return [Point(kind, kind, "raw_tp")]


def _timer(node: tree.Point, kind: str, rest: str, host: Host) -> list[Point]:
    del host
    parts = rest.split(":")
    name = f"{kind}:{rest}"
    if len(parts) == 1:
        match = _DURATION.fullmatch(parts[0])
        if match is None:
            raise _refuse(node, f"{kind} needs a rate, such as {kind}:hz:99 or {kind}:s:1")
        scale = {**_UNITS_NS, "m": 60 * 10**9, "h": 3600 * 10**9}[match[2] or "ns"]
        return [_sampled(node, kind, name, "cpu-clock", int(match[1]) * scale)]
    if len(parts) != 2 or not parts[1].isdigit():
        raise _refuse(node, f"Invalid rate of {kind} probe: {rest}")
    unit, number = parts[0], int(parts[1])
    if unit == "hz":
        if number < 1:
            raise _refuse(node, f"{kind} frequency must be positive")
        return [Point(kind, name, "perf_event", event="cpu-clock", frequency=number)]
    if unit not in _UNITS_NS:
        raise _refuse(node, f"{unit} is not an accepted unit", "hz, s, ms, us, ns")
    return [_sampled(node, kind, name, "cpu-clock", number * _UNITS_NS[unit])]


def _sampled(node: tree.Point, kind: str, name: str, event: str, period: int) -> Point:
    if period < 1 or period >= 1 << 63:
        raise _refuse(node, f"Invalid period of {kind} probe: {period}")
    return Point(kind, name, "perf_event", event=event, period=period)


def _perf(node: tree.Point, kind: str, rest: str, host: Host) -> list[Point]:
    del host
    table = SOFTWARE if kind == "software" else HARDWARE
    name, _, count = rest.partition(":")
    if name not in table:
        raise _refuse(node, f"Unknown {kind} probe: {name}", suggest(name, list(table)))
    event, usual = table[name]
    if count:
        try:
            usual = int(float(count)) if "e" in count else int(count, 0)
        except (ValueError, OverflowError):
            raise _refuse(node, f"Invalid count of {kind} probe: {count}") from None
    return [_sampled(node, kind, f"{kind}:{rest}", event, usual)]


def _tracepoint(node: tree.Point, kind: str, rest: str, host: Host) -> list[Point]:
    category, _, event = rest.partition(":")
    if not category or not event:
        raise _refuse(node, "tracepoint probe must have a category and an event")
    wanted = f"{category}:{event}"
    if _WILD.search(wanted):
        names = _match(wanted, host.tracepoints())
    else:
        names = [wanted] if host.tracepoint_format(category, event) else []
    if not names:
        hint = "" if _WILD.search(wanted) else suggest(wanted, host.tracepoints())
        raise _refuse(node, f"No matches for tracepoint:{wanted}", hint)
    return [Point(kind, f"{kind}:{name}", f"tracepoint/{name.replace(':', '/')}") for name in names]


def _raw_tracepoint(node: tree.Point, kind: str, rest: str, host: Host) -> list[Point]:
    event = rest.rpartition(":")[2]
    names = sorted({name.partition(":")[2] for name in host.tracepoints()})
    matches = _match(event, names) if _WILD.search(event) else [event] if event else []
    if not matches:
        raise _refuse(node, f"No matches for {kind}:{rest}")
    return [Point(kind, f"{kind}:{name}", f"raw_tp/{name}") for name in matches]


def _kernel_function(node: tree.Point, kind: str, rest: str, host: Host) -> list[Point]:
    module, _, function = rest.rpartition(":")
    if not function:
        raise _refuse(node, f"{kind} probe type requires a function")
    if _WILD.search(function):
        names = _match(function, host.kernel_functions())
        if not names:
            raise _refuse(node, f"No matches for {kind}:{rest}")
    else:
        names = [function]
    prefix = f"{module}:" if module and not _WILD.search(module) else ""
    has_target = kind in ("kprobe", "kretprobe")
    return [
        Point(kind, f"{kind}:{prefix}{name}", kind if has_target else f"{kind}/{name}",
              f"{prefix}{name}" if has_target else "")
        for name in names
    ]  # fmt: skip


def _user_function(node: tree.Point, kind: str, rest: str, host: Host) -> list[Point]:
    path, _, function = rest.partition(":")
    path = path.strip('"')
    language, colon, inner = function.partition(":")
    if colon and language in ("cpp", "c"):
        function = inner
    function = function.strip('"')
    if not path or not function:
        raise _refuse(node, f"{kind} should have a target and a function: {kind}:PATH:FUNCTION")
    if _WILD.search(path):
        raise _refuse(node, "wildcards in the path of a program are not supported yet")
    names = [function]
    if _WILD.search(function):
        names = _match(function, host.user_functions(path))
        if not names:
            raise _refuse(node, f"No matches for {kind}:{rest}")
    return [Point(kind, f"{kind}:{path}:{name}", kind, f"{path}:{name}") for name in names]


def _match(pattern: str, names: Sequence[str]) -> list[str]:
    return sorted(set(fnmatch.filter(names, pattern)))


_MAKERS = {
    "begin": _special, "end": _special, "interval": _timer, "profile": _timer,
    "tracepoint": _tracepoint, "kprobe": _kernel_function, "kretprobe": _kernel_function,
    "fentry": _kernel_function, "fexit": _kernel_function, "uprobe": _user_function,
    "uretprobe": _user_function, "software": _perf, "hardware": _perf,
    "rawtracepoint": _raw_tracepoint,
}  # fmt: skip
