"""One BPF_PROG_LOAD: retried while interrupted, and with a log when it is refused.

The verifier's log costs time, so the first attempt asks for none.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping

from purebpf.errors import KernelError
from purebpf.loader.host import memlock
from purebpf.syscall import bpf
from purebpf.syscall.command import Field, Log
from purebpf.syscall.descriptor import Descriptor
from purebpf.tuples import NamedTuple

__all__ = ["UNRELATED", "LoadCall", "Outcome", "attempt"]

_FIRST_LOG = 1 << 16
_LARGEST_LOG = (1 << 24) - 1
"""What every kernel takes (UINT_MAX >> 8 before Linux 5.2, commit 7a9f5c65abcc)."""

_ATTEMPTS = 5
UNRELATED = frozenset({errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.EINTR})
"""Errors that have nothing to do with the program, and that no log explains."""


class LoadCall(NamedTuple):
    """The arguments of the call; `fields` is union bpf_attr, by name."""

    type: int
    code: bytes
    license: str
    fields: Mapping[str, Field]
    name: bytes


class Outcome(NamedTuple):
    """A loaded program or a refusal, and the log."""

    result: Descriptor | KernelError
    log: str


def attempt(call: LoadCall, log_level: int) -> Outcome:
    """Load it; the first attempt has no log unless one was requested."""
    if log_level:
        return _load_with_log(call, log_level)
    kind, code, terms = call.type, call.code, call.license
    try:
        program_fd = bpf.prog_load(kind, code, terms, prog_name=call.name, log=None, **call.fields)
        return Outcome(program_fd, "")
    except KernelError as error:
        first = error
    interrupted = first.errno == errno.EAGAIN
    if first.errno in UNRELATED and not interrupted:
        return Outcome(first, "")
    if interrupted or (first.errno == errno.EPERM and memlock.raise_memlock()):
        try:
            return Outcome(_issue(call, None, tried=int(interrupted)), "")
        except KernelError as error:
            first = error
        if first.errno in UNRELATED:
            return Outcome(first, "")
    outcome = _load_with_log(call, 1)
    if isinstance(outcome.result, Descriptor):
        return outcome
    # A log that was too small hides the verifier's errno behind ENOSPC.
    return Outcome(first, outcome.log)


def _issue(call: LoadCall, log: Log | None, *, tried: int = 0) -> Descriptor:
    """The call; EAGAIN, which a pending signal causes, is tried a few more times."""
    kind, code, terms = call.type, call.code, call.license
    for _ in range(tried, _ATTEMPTS - 1):
        try:
            return bpf.prog_load(kind, code, terms, prog_name=call.name, log=log, **call.fields)
        except KernelError as error:
            if error.errno != errno.EAGAIN:
                raise
    return _without_timer_signals(
        lambda: bpf.prog_load(kind, code, terms, prog_name=call.name, log=log, **call.fields)
    )


def _load_with_log(call: LoadCall, level: int) -> Outcome:
    """Load it with a log, in a buffer that grows until the log fits.

    Since Linux 6.4 the kernel says how much it needs (commit 47a71c1f9af0, "bpf: Add log_true_size
    output field ..."), and keeps (commit 121664093803) the end of a log that does not fit; before,
    one can only try, and has the beginning. A partial log is better than none.
    """
    size = _FIRST_LOG
    while True:
        log = Log(size, level)
        try:
            return Outcome(_issue(call, log), log.text())
        except KernelError as error:
            too_small = error.errno == errno.ENOSPC or log.true_size > size
            if not too_small or size == _LARGEST_LOG:
                return Outcome(error, log.text())
        size = min(max(log.true_size, 4 * size), _LARGEST_LOG)


def _without_timer_signals(issue: Callable[[], Descriptor]) -> Descriptor:
    """Any signal interrupts verification, and interval timers send them without end."""
    import signal

    timers = {signal.SIGALRM, signal.SIGPROF, signal.SIGVTALRM}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, timers)
    try:
        return issue()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
