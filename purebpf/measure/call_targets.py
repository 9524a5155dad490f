"""The files and peers that the system calls of processes are about: a short look at them."""

from __future__ import annotations

import errno
import time
from collections import Counter
from collections.abc import Collection, Iterator

from purebpf.errors import KernelError, NotSupportedError
from purebpf.tuples import NamedTuple

__all__ = ["LOOK_S", "CallTargets", "describe_targets", "look"]

LOOK_S = 0.5
_OPENS = ("open", "openat", "openat2")
_NAMED, _PART = 2, 0.1
"""Targets in a sentence, and the least part of the calls that they have."""
_PENDING = errno.EINPROGRESS


class CallTargets(NamedTuple):
    """Calls by target.

    Attributes:
        paths: opens by path, estimated from one of eight.
        connects: failed connections by peer and error.
    """

    paths: Counter[str]
    connects: Counter[tuple[str, int]]


def look(pids: Collection[int], seconds: float = LOOK_S) -> CallTargets | None:
    """Count the targets of processes for a moment; None if the kernel does not allow it."""
    from purebpf.measure.targets import PidNamespace
    from purebpf.observe.instruments.wait_reasons import WaitReasons

    try:
        with WaitReasons(PidNamespace.own()) as reasons:
            reasons.start()
            time.sleep(seconds)
            reasons.stop()
            paths: Counter[str] = Counter()
            for opened in reasons.paths():
                if opened.pid in pids and opened.call in _OPENS:
                    paths[opened.path] += opened.times
            connects: Counter[tuple[str, int]] = Counter()
            for made in reasons.connects():
                if made.pid in pids and made.error not in (0, _PENDING):
                    host = f"[{made.address}]" if ":" in made.address else made.address
                    connects[f"{host}:{made.port}", made.error] += made.times
    except (KernelError, NotSupportedError):
        return None
    return CallTargets(paths, connects)


def describe_targets(targets: CallTargets, calls: Collection[str]) -> Iterator[str]:
    """Yield a sentence for each wanted call ("open", "connect") with targets that stand out."""
    if "open" in calls and (named := _shares(targets.paths)):
        yield f"opens: {named}"
    errors = Counter(
        {
            f"{peer} ({errno.errorcode.get(number, number)})": times
            for (peer, number), times in targets.connects.items()
        }
    )
    if "connect" in calls and (named := _shares(errors)):
        yield f"connects that fail: {named}"


def _shares(counts: Counter[str]) -> str:
    """Return `NAME 98 %, NAME 2 %` of the targets with most calls."""
    total = counts.total()
    return ", ".join(
        f"{name} {100 * times / total:.0f} %"
        for name, times in counts.most_common(_NAMED)
        if times > _PART * total
    )
