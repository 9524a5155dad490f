"""`list_points`: the attach points that fit a pattern."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator

from purebpf.script.host import Host
from purebpf.script.points import ALIASES, HARDWARE, SOFTWARE
from purebpf.script.user_points import list_static

__all__ = ["describe_fields", "list_points"]

_FIELD = re.compile(r"^\tfield:(.+?);", re.MULTILINE)
_TIMERS = ("hz", "ms", "s", "us")
_FUNCTIONS = ("uprobe", "uretprobe")


def list_points(pattern: str, host: Host) -> list[str]:
    """Return the names of attach points, sorted; programs only if the pattern has a path.

    Args:
        pattern: such as `tracepoint:sched:*` or `uprobe:/bin/bash:read*`; "" for all of the kernel,
            and of the process of the host.
        host: the machine.
    """
    kind, colon, rest = pattern.partition(":")
    wanted = ALIASES.get(kind, kind)
    names = set(_user_points(wanted if colon else "*", rest, host) if rest or host.pid else ())
    if wanted in (*_FUNCTIONS, "usdt") and rest:
        return sorted(names)
    whole = f"{wanted}:{rest}" if colon else f"*{pattern}*" if pattern else "*"
    names.update(fnmatch.filter(_kernel_points(host), whole))
    return sorted(names)


def describe_fields(name: str, host: Host) -> list[str]:
    """Return a line of C for each field of a tracepoint; nothing for other attach points."""
    kind, _, rest = name.partition(":")
    if kind != "tracepoint":
        return []
    text = host.tracepoint_format(*rest.split(":", 1))
    return [" ".join(words.split()) for words in _FIELD.findall(text)
            if not words.partition("[")[0].split()[-1].startswith("common_")]  # fmt: skip


def _kernel_points(host: Host) -> Iterator[str]:
    for name in host.tracepoints():
        yield f"tracepoint:{name}"
        yield f"rawtracepoint:{name}"
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
