"""`list_points`: the attach points that fit a pattern."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator

from purebpf.script.host import Host
from purebpf.script.points import ALIASES, HARDWARE, SOFTWARE

__all__ = ["list_points"]

_TIMERS = ("hz", "ms", "s", "us")


def list_points(pattern: str, host: Host) -> list[str]:
    """Return the names of attach points, sorted; those of programs only for a path in the pattern.

    Args:
        pattern: such as `tracepoint:sched:*` or `uprobe:/bin/bash:read*`; "" for all of the kernel.
        host: the machine.
    """
    kind, colon, rest = pattern.partition(":")
    wanted = ALIASES.get(kind, kind)
    pattern = f"{wanted}:{rest}" if colon else f"*{pattern}*" if pattern else "*"
    if wanted in ("uprobe", "uretprobe") and rest:
        return sorted(_user_points(wanted, rest, host))
    return sorted(set(fnmatch.filter(_kernel_points(host), pattern)))


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
    for name in host.user_functions(path):
        if fnmatch.fnmatchcase(name, function or "*"):
            yield f"{kind}:{path}:{name}"
