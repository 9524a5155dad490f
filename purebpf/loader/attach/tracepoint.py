"""Attach to a tracepoint of tracefs, through a perf event (perf_event_open(2)).

Commit 98b5c2c65c29, "perf, bpf: allow bpf programs attach to tracepoints"; several programs at one
since Linux 4.15: commit e87c6bc3852b, "bpf: permit multiple bpf attachments for a single perf
event".
"""

from __future__ import annotations

import errno
import re
from contextlib import suppress

from purebpf.errors import AttachError, KernelError, NotSupportedError
from purebpf.loader.attach._common.errors import attach_error
from purebpf.loader.attach._common.options import target_of
from purebpf.loader.attach.perf_event import owning_link
from purebpf.loader.perf.perf_event import PerfEvent
from purebpf.loader.programs.link import Link
from purebpf.loader.programs.program import Program
from purebpf.syscall import tracefs

__all__ = ["attach"]

_MISSING = {errno.ENOENT: "this kernel does not have this tracepoint"}
_FIELD = re.compile(r"\toffset:(\d+);\tsize:(\d+);")
_ANY_CPU = 0
"""The program runs wherever the tracepoint is passed; the event must merely be somewhere."""


def attach(program: Program, target: str | None, *, cookie: int = 0) -> Link:
    """Run `program` whenever a tracepoint is passed: `"sched/sched_switch"` or `sched:...`.

    By default `target` is the tracepoint that its section names. `cookie` is the value of
    bpf_get_attach_cookie() (Linux 5.15). tracefs need not be mounted (Linux 5.2).

    While a program that returns 0 is attached, perf and other users of the tracepoint do not see
    its events. Return 1.

    Raises:
        TypeError: no target, and none in the section name.
        ValueError: a target that is not "category/name"; the program is closed.
        AttachError: ENOENT, no such tracepoint; EEXIST, the program is on it already; EACCES, it
            reads more than the tracepoint's record has.
        NotSupportedError: no tracefs; a cookie, and a kernel that has none.
    """
    where = target_of(program, target, "target required: a tracepoint, 'category/name'")
    category, _, name = where.replace(":", "/").partition("/")
    if not category or not name or "/" in name:
        raise ValueError(f"{where!r} is not a tracepoint: expected 'category/name'")
    description = f"program {program.name!r} on tracepoint {category}/{name}"
    event = _open_tracepoint(category, name, description)
    try:
        return owning_link(program, event, description, cookie=cookie)
    except AttachError as error:
        if error.errno == errno.EACCES and not error.why:
            raise _explain_beyond_record(error, description, category, name) from None
        raise


def _open_tracepoint(category: str, name: str, description: str) -> PerfEvent:
    """The tracepoint as a perf event."""
    try:
        number = tracefs.tracepoint_id(category, name)
        return PerfEvent.tracepoint(number, pid=-1, cpu=_ANY_CPU)
    except KernelError as error:
        if error.errno == errno.ENOENT and not error.why:
            raise attach_error(error, description, _MISSING, fix=_suggest(category, name)) from None
        raise attach_error(error, description) from None


def _suggest(category: str, name: str) -> str:
    """Tracepoints of a similar name, or how to list them."""
    from difflib import get_close_matches

    with suppress(KernelError, NotSupportedError):
        tracepoints = [line.strip().replace(":", "/") for line in tracefs.tracepoints()]
        if close := get_close_matches(f"{category}/{name}", tracepoints, cutoff=0.75):
            return f"similar: {', '.join(close)}"
    return "list tracepoints with: perf list tracepoint"


def _explain_beyond_record(
    error: AttachError, description: str, category: str, name: str
) -> AttachError:
    """The only EACCES of perf_event_set_bpf_prog(): the verifier does not know the record."""
    ends = [0]
    with suppress(KernelError, NotSupportedError):
        fields = tracefs.tracepoint_format(category, name)
        ends += (int(at) + int(size) for at, size in _FIELD.findall(fields))
    why = f"the program reads beyond the record, which has {max(ends)} bytes"
    fix = f"compare its struct with /sys/kernel/tracing/events/{category}/{name}/format"
    return attach_error(error, description, {errno.EACCES: why}, fix=fix)
