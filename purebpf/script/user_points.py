"""Attach points in programs and libraries: functions, and static probes (USDT)."""

from __future__ import annotations

import re

from purebpf.late_pattern import compile_later
from purebpf.script import tree
from purebpf.script.host import Datum, Host, StaticProbe
from purebpf.script.point import (
    Danger,
    MissingProbeError,
    Point,
    is_wild,
    match_names,
    refuse_point,
)
from purebpf.symbols.usdt_arguments import Argument, UnknownArgument

__all__ = ["find_variable", "list_static", "static_points", "user_functions"]

_NUMBER = compile_later(r"0[xX][0-9a-fA-F]+|\d+")
_LINE = compile_later(
    r'"?(?P<path>[^@:"]+)"?@(?P<source>[^@:]+):(?P<line>\d+)(?::(?P<column>\d+))?'
)
_QUOTED = compile_later(r'^"(.*)"(\+\w+)?$')
Arguments = tuple[Argument | UnknownArgument, ...]


def user_functions(node: tree.Point, kind: str, rest: str, host: Host) -> list[Point]:
    """Return the functions that `PATH:FUNCTION` means.

    Raises:
        MissingProbeError: there is none.
        ScriptError: a malformed point.
    """
    if (line := _LINE.fullmatch(rest)) is not None:
        return _at_line(node, kind, rest, line, host)
    path, _, function = rest.partition(":")
    path = path.strip('"')
    language, colon, inner = function.partition(":")
    if colon and language in ("cpp", "c"):
        function = inner
    function = _QUOTED.sub(r"\1\2", function)
    if not function or not (path or host.pid):
        message = f"{kind} should have a target and a function: {kind}:PATH:FUNCTION"
        raise refuse_point(node, message)
    if _NUMBER.fullmatch(function):
        return [_at_address(kind, file, int(function, 0), host) for file in host.user_files(path)]
    points: list[Point] = []
    why = ""
    for file in host.user_files(path):
        if is_wild(function):
            names = match_names(function, host.user_functions(file))
        else:
            why = host.missing_function(file, function)
            names = [] if why else [function]
        target = host.seen_file(file)
        danger = None if is_wild(function) or why else host.probe_danger(file, function)
        points += [
            Point(kind, f"{kind}:{file}:{name}", kind, f"{target}:{name}", danger=danger)
            for name in names
        ]
    if not points and not (is_wild(function) and host.user_files(path)):
        raise MissingProbeError(node, kind, rest, why)
    return points


def _at_line(
    node: tree.Point, kind: str, rest: str, line: re.Match[str], host: Host
) -> list[Point]:
    """Return the points at a line of a source file, `PATH@SOURCE:LINE[:COLUMN]`.

    Raises:
        MissingProbeError: no file has code of this line.
    """
    points = []
    numbers = int(line["line"]), int(line["column"] or 0)
    for file in host.user_files(line["path"]):
        address = host.line_address(file, line["source"], *numbers)
        if address is not None:
            place = rest.partition("@")[2]
            points.append(
                _at_address(kind, file, address, host)._replace(name=f"{kind}:{file}@{place}")
            )
    if not points:
        why = "no DWARF of the program has code for this line"
        raise MissingProbeError(node, kind, rest, why)
    return points


def _at_address(kind: str, file: str, address: int, host: Host) -> Point:
    """Return the point at an address of a program; its danger if no instruction is known there."""
    name, target = f"{kind}:{file}:{address}", host.seen_file(file)
    danger: Danger | None
    found = host.code_at(file, address)
    if found is None:
        danger = Danger(f"Could not resolve address: {file}:{address:#x}", can_be_forced=True)
        return Point(kind, name, kind, f"{target}:{address:#x}", danger=danger)
    place = f"{found.function}+{found.distance}"
    danger = host.probe_danger(file, place) if found.distance else None
    if kind == "uretprobe" and found.distance:
        message = "uretprobes cannot be attached at function offset. (address resolved to: "
        danger = Danger(f"{message}{place})", can_be_forced=False)
    return Point(kind, name, kind, f"{target}:{found.offset:#x}", danger=danger)


def find_variable(point: Point, name: str, host: Host) -> Datum | None:
    """Find a variable of the program of a point, by its distance from the place of the point."""
    if point.places:
        return host.variable(point.target, hex(point.places[0][0]), name)
    path, _, function = point.target.rpartition(":")
    return host.variable(path, function, name)


def static_points(node: tree.Point, kind: str, rest: str, host: Host) -> list[Point]:
    """Return the static probes that `PATH:[PROVIDER:]NAME` means; without a path, of the process.

    Each point has the places whose arguments are in the same registers.

    Raises:
        MissingProbeError: there is none.
        ScriptError: a malformed point.
    """
    path, provider, name = _split(node, rest)
    if path in ("", "*") and not host.pid:
        message = f"{kind} probes without a path need a process: -p PID, or {kind}:PATH:NAME"
        raise refuse_point(node, message)
    groups: dict[tuple[str, str, Arguments], list[tuple[int, int]]] = {}
    for file, probe in list_static(path, provider, name, host):
        label = f"{kind}:{file}:{probe.provider}:{probe.name}"
        places = groups.setdefault((label, file, probe.arguments), [])
        places.append((probe.offset, probe.semaphore))
    if not groups:
        raise MissingProbeError(node, kind, rest)
    labels: set[str] = set()
    points = []
    for (label, file, arguments), places in groups.items():
        points.append(
            Point(kind, label, "uprobe", host.seen_file(file), places=tuple(places),
                  arguments=arguments, is_counted=label not in labels)
        )  # fmt: skip
        labels.add(label)
    return points


def _split(node: tree.Point, rest: str) -> tuple[str, str, str]:
    """Return the path, the provider and the name of a static probe."""
    head, quote, name = rest.partition(':"')
    if quote:
        name = name.removesuffix('"').replace('\\"', '"')
    else:
        head, _, name = rest.rpartition(":")
    if not name:
        raise refuse_point(node, "usdt probes need a name: usdt:PATH:[PROVIDER:]NAME")
    path, colon, provider = head.rpartition(":")
    if not colon:
        path, provider = head, ""
    return path.strip('"'), provider or "*", name


def list_static(path: str, provider: str, name: str, host: Host) -> list[tuple[str, StaticProbe]]:
    """List files and their static probes that fit patterns."""
    return [
        (file, probe)
        for file in host.user_files(path)
        for probe in host.static_probes(file)
        if _fits(probe.provider, provider) and _fits(probe.name, name)
    ]


def _fits(name: str, pattern: str) -> bool:
    return name == pattern or bool(is_wild(pattern) and match_names(pattern, [name]))
