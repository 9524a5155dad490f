"""A sample filter at work: a program that the events run, or, where that cannot be, a function.

parsed = filter.parse("comm == mysqld, cpu == 1")
with SampleFilter(parsed, sample_type) as chosen:
    for event in events:
        chosen.attach(event)
    ...
    print(chosen.counts())
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import NamedTuple, Self

from purebpf.abi.bpf import bpf_map_type, bpf_prog_type
from purebpf.abi.instruction import pack
from purebpf.errors import KernelError, NotSupportedError, VerifierError
from purebpf.filter.access import Access, from_registers, from_sample
from purebpf.filter.check import check
from purebpf.filter.compile import Code, Counters, compile_terms, missing, stride
from purebpf.filter.condition import Names, Term, resolve
from purebpf.filter.evaluate import predicate
from purebpf.filter.syntax import Filter
from purebpf.kernel import cpus
from purebpf.kernel.btf import kernel_btf
from purebpf.kernel.filter_names import MachineNames
from purebpf.kernel.link import Event, Link
from purebpf.kernel.load_call import LoadCall, load
from purebpf.kernel.map import Map
from purebpf.kernel.program import Program
from purebpf.spec import MapSpec
from purebpf.syscall.descriptor import Descriptor
from purebpf.wire.perf_records import Sample

__all__ = ["Counts", "SampleFilter", "kernel_access"]

_FIRST_PID_NAMESPACE = 0xEFFFFFFC  # PROC_PID_INIT_INO
_NAME = "sample_filter"
_NOT_ALLOWED = (errno.EPERM, errno.EACCES)


class Counts(NamedTuple):
    """What became of the samples.

    Attributes:
        passed: samples that the filter kept.
        rejected: each term as it was written, and the samples it was the first to reject.
    """

    passed: int
    rejected: tuple[tuple[str, int], ...]

    @property
    def dropped(self) -> int:
        """Samples that some term rejected."""
        return sum(count for _, count in self.rejected)

    @property
    def seen(self) -> int:
        """All samples."""
        return self.passed + self.dropped


def kernel_access() -> Access:
    """How programs get at the words of samples on this kernel."""
    try:
        btf = kernel_btf()
    except NotSupportedError:
        btf = None
    found = from_sample(btf) if btf is not None else None
    if found is not None:
        return found
    own = os.stat("/proc/self/ns/pid").st_ino == _FIRST_PID_NAMESPACE
    return from_registers(btf, os.uname().machine, own_pids=own)


class SampleFilter:
    """A filter, ready to be attached to events whose samples have `sample_type`.

    The program runs in the kernel when it can; where a field is out of its reach there, or where
    this process may not load programs, `attach` does nothing, `why_user_space` says so, and the
    caller asks `accepts` about each sample.

    Args:
        parsed: the filter.
        sample_type: attr.sample_type of the events.
        event: what to call them in errors.
        names: who knows users, cgroups and functions; by default this machine.
        in_kernel: False keeps the filter in user space whatever the kernel could do.

    Attributes:
        parsed: the filter.
        terms: its terms, names looked up.
        code: the program; None in user space.
        why_user_space: why the filter runs in user space, or "".

    Raises:
        FilterError: the samples lack a field, or a name stands for nothing.
        NotSupportedError: neither the kernel nor user space can run this filter here; or it is
            too long.
        VerifierError: the kernel refused the program.
        KernelError: it refused the map, or had no memory or descriptors left.
    """

    def __init__(
        self,
        parsed: Filter,
        sample_type: int,
        *,
        event: str = "this event",
        names: Names | None = None,
        in_kernel: bool = True,
    ) -> None:
        check(parsed, sample_type, event)
        self.parsed = parsed
        self.terms: tuple[Term, ...] = resolve(parsed, sample_type, names or MachineNames())
        self.code: Code | None = None
        self.why_user_space = "" if in_kernel else "it was asked for"
        self._counters: Map | None = None
        self._program: Program | None = None
        self._passed = 0
        self._rejected = [0] * len(self.terms)
        self._rejecting: Callable[[Sample], int] | None = None
        with ExitStack() as stack:
            if in_kernel:
                self._load(stack)
            if self._program is None:
                self._rejecting = self._in_user_space()
            self._owned = stack.pop_all()

    def _load(self, stack: ExitStack) -> None:
        """The program and its counters; or why there is none in `why_user_space`."""
        access = kernel_access()
        if absent := missing(self.terms, access):
            self.why_user_space = f"this kernel shows programs no {', '.join(absent)}"
            return
        numbers, size = cpus.possible()[-1] + 1, stride(self.terms)
        spec = MapSpec(_NAME, bpf_map_type.BPF_MAP_TYPE_ARRAY, 4, numbers * size, 1)
        try:
            counters = stack.enter_context(Map.create(spec))
            code = compile_terms(self.terms, access, Counters(counters.fileno(), numbers, size))
            self._program = stack.enter_context(_loaded(code))
        except KernelError as error:
            if error.errno not in _NOT_ALLOWED or isinstance(error, VerifierError):
                raise
            self.why_user_space = str(error)
            return
        self._counters = counters
        self.code = code

    def _in_user_space(self) -> Callable[[Sample], int]:
        try:
            return predicate(self.terms)
        except NotSupportedError as error:
            reason = f"{self.why_user_space}; and {error.reason}"
            raise NotSupportedError(f"the filter {self.parsed}", reason) from None

    @property
    def in_kernel(self) -> bool:
        """Whether a program filters, so that rejected samples never reach the ring."""
        return self._program is not None

    @property
    def program(self) -> Program | None:
        """The program, None in user space."""
        return self._program

    def attach(self, event: Event) -> Link | None:
        """Filter the samples of `event`, which stays as it is: enabled or not.

        None in user space. The link ends when the filter is closed.

        Raises:
            AttachError: EEXIST, the event runs a program already; EINVAL, it takes none.
        """
        if self._program is None:
            return None
        return self._owned.enter_context(self._program.attach(event, enable=False))

    def accepts(self, sample: Sample) -> bool:
        """Whether to keep a sample; counts it. Always True when the kernel filters."""
        if self._rejecting is None:
            return True
        index = self._rejecting(sample)
        if index < 0:
            self._passed += 1
            return True
        self._rejected[index] += 1
        return False

    def counts(self) -> Counts:
        """What became of the samples so far.

        Raises:
            KernelError: the counters could not be read.
        """
        passed, rejected = self._passed, list(self._rejected)
        if self._counters is not None:
            passed, *rejected = _totals(self._counters[0], len(self.terms) + 1)
        return Counts(passed, tuple(zip((term.text for term in self.terms), rejected, strict=True)))

    def explain(self) -> str:
        """The filter as it was understood, and the code it became."""
        lines = [f"filter: {self.parsed}"]
        if self.code is None:
            lines.append(f"runs in user space: {self.why_user_space}")
        else:
            lines += [f"code: {len(self.code.instructions)} instructions", self.code.listing()]
        return "\n".join(lines)

    def close(self) -> None:
        """Detach and free everything. Twice is harmless."""
        self._owned.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _totals(value: bytes, count: int) -> Sequence[int]:
    """The counters of all CPUs, added up."""
    size = -(-8 * count // 64) * 64
    rows = (struct.unpack_from(f"={count}Q", value, at) for at in range(0, len(value), size))
    return [sum(column) for column in zip(*rows, strict=True)]


def _loaded(code: Code) -> Program:
    """The program in the kernel.

    Raises:
        VerifierError: it was refused. KernelError: EPERM, this process may load none.
    """
    kind = bpf_prog_type.BPF_PROG_TYPE_PERF_EVENT
    call = LoadCall(kind, pack(list(code.instructions)), "GPL", {}, _NAME.encode())
    result, log = load(call, 0)
    if isinstance(result, Descriptor):
        return Program(result, _NAME, kind)
    if log:
        from purebpf.kernel.verifier import explain

        raise VerifierError(_NAME, result.errno or 0, log=log, line=explain(log)[0])
    if result.errno in _NOT_ALLOWED:
        from purebpf.kernel.privilege import explained

        raise explained(result, "a filter program", "CAP_BPF", "CAP_PERFMON")
    raise result
