"""`list_points`: the attach points that fit a pattern."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator

from purebpf.late_pattern import compile_later
from purebpf.script.btf_types import BtfTypes
from purebpf.script.host import Host
from purebpf.script.points import (
    ALIASES,
    HARDWARE,
    SOFTWARE,
    described_functions,
    iterators,
    raw_tracepoints,
)
from purebpf.script.program_types import spell_parameter
from purebpf.script.user_points import list_static

__all__ = ["describe_fields", "list_points"]

_FIELD = compile_later(r"^\tfield:(.+?);", re.MULTILINE)
_TIMERS = ("hz", "ms", "s", "us")
_FUNCTIONS = ("uprobe", "uretprobe")
_IN_MODULES = ("rawtracepoint", "fentry", "fexit")
"""Kinds of points that are listed with the module that has them."""


def list_points(pattern: str, host: Host) -> list[str]:
    """Return the names of attach points, sorted; programs only if the pattern has a path.

    Args:
        pattern: such as `tracepoint:sched:*` or `uprobe:/bin/bash:read*`; "" for all of the kernel,
            and of the process of the host.
        host: the machine.
    """
    if "," in pattern:
        parts = (list_points(part.strip(), host) for part in pattern.split(","))
        return sorted({name for names in parts for name in names})
    kind, colon, rest = pattern.partition(":")
    wanted = ALIASES.get(kind, kind)
    names = set(_user_points(wanted if colon else "*", rest, host) if rest or host.pid else ())
    if wanted in (*_FUNCTIONS, "usdt") and rest:
        return sorted(names)
    if wanted in _IN_MODULES and rest and ":" not in rest:
        rest = f"*:{rest}"
    whole = f"{wanted}:{rest}" if colon else f"*{pattern}*" if pattern else "*"
    names.update(fnmatch.filter(_kernel_points(host), whole))
    return sorted(names)


def describe_fields(name: str, host: Host) -> list[str]:
    """Return a line of C for each argument of an attach point, if the kernel describes them."""
    kind, _, rest = name.partition(":")
    if kind == "uprobe":
        path, _, function = rest.rpartition(":")
        types = host.program_types(path, function)
        return [] if types is None else [spell_parameter(*pair) for pair in types.parameters()]
    if kind != "tracepoint":
        btf = host.btf()
        return [] if btf is None else _describe_arguments(kind, rest, BtfTypes(btf))
    text = host.tracepoint_format(*rest.split(":", 1))
    return [" ".join(words.split()) for words in _FIELD.findall(text)
            if not words.partition("[")[0].split()[-1].startswith("common_")]  # fmt: skip


def _describe_arguments(kind: str, rest: str, kernel: BtfTypes) -> list[str]:
    """List the arguments of a function, of a raw tracepoint, or of an iterator by BTF."""
    name = rest.rpartition(":")[2]
    if kind == "iter":
        return kernel.spell_members(f"bpf_iter__{name}")[1:]
    if kind in ("kprobe", "kretprobe"):
        return kernel.spell_registers(name, of_result=kind == "kretprobe")
    skipped = 1 if kind == "rawtracepoint" else 0
    function = f"__traceiter_{name}" if skipped else name
    if kind not in _IN_MODULES:
        return []
    return kernel.spell_parameters(function, with_result=kind == "fexit")[skipped:]


def _kernel_points(host: Host) -> Iterator[str]:
    yield from (f"tracepoint:{name}" for name in host.tracepoints())
    yield from (f"rawtracepoint:vmlinux:{name}" for name in raw_tracepoints(host))
    yield from (f"iter:{name}" for name in iterators(host))
    traced = described_functions(host)
    for kind in ("fentry", "fexit"):
        yield from (f"{kind}:vmlinux:{name}" for name in traced)
    for kind in ("kprobe", "kretprobe"):
        yield from (f"{kind}:{name}" for name in host.kernel_functions())
    yield from (f"software:{name}:" for name in SOFTWARE)
    yield from (f"hardware:{name}:" for name in HARDWARE)
    for kind in ("interval", "profile"):
        yield from (f"{kind}:{unit}:" for unit in _TIMERS)


def _user_points(kind: str, rest: str, host: Host) -> Iterator[str]:
    path, _, function = rest.partition(":")
    if path == "*" and not function and not host.pid:
        return
    for wanted in fnmatch.filter(_FUNCTIONS, kind):
        for file in host.user_files(path):
            for name in host.user_functions(file):
                if fnmatch.fnmatchcase(name, function or "*"):
                    yield f"{wanted}:{file}:{name}"
    if fnmatch.fnmatchcase("usdt", kind):
        provider, _, name = function.rpartition(":")
        for file, probe in list_static(path, provider or "*", name or "*", host):
            yield f"usdt:{file}:{probe.provider}:{probe.name}"
