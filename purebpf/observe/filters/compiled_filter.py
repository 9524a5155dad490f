"""A filter as a separate program, with a counter for each term on each CPU."""

from __future__ import annotations

import errno
import struct
from collections.abc import Sequence
from contextlib import ExitStack

from purebpf.abi.bpf import bpf_map_type, bpf_prog_type
from purebpf.abi.instruction import pack
from purebpf.closable import Closing
from purebpf.errors import VerifierError
from purebpf.filter.compile import Counters, FilterCode, compile_terms, stride
from purebpf.filter.lowering import Term
from purebpf.filter.sample_layout import SampleAccess
from purebpf.loader.host import cpus
from purebpf.loader.load.load_call import LoadCall, attempt
from purebpf.loader.maps.map import Map
from purebpf.loader.programs.link import EventDescriptor
from purebpf.loader.programs.program import Program
from purebpf.spec import MapSpec
from purebpf.syscall.descriptor import Descriptor

__all__ = ["CompiledFilter"]

_NAME = "sample_filter"


class CompiledFilter(Closing):
    """The program of a filter, loaded.

    Args:
        terms: conditions that must all be true of a sample.
        access: how the program gets at its fields.
        members: by process ID in the first PID namespace: samples of others are dropped first.

    Attributes:
        code: its instructions.
        program: the same in the kernel.

    Raises:
        NotSupportedError: a field that `access` cannot give, or too long a filter.
        VerifierError: the kernel refused the program.
        KernelError: EPERM, this process may load none; or no memory or descriptors left.
    """

    def __init__(
        self, terms: Sequence[Term], access: SampleAccess, members: Map | None = None
    ) -> None:
        self._has_members = members is not None
        self._count = 1 + len(terms) + self._has_members
        self._stride = stride(self._count)
        numbers = cpus.possible()[-1] + 1
        spec = MapSpec(_NAME, bpf_map_type.BPF_MAP_TYPE_ARRAY, 4, numbers * self._stride, 1)
        with ExitStack() as stack:
            self._counters = stack.enter_context(Map.create(spec))
            counters = Counters(self._counters.fileno(), numbers, self._stride)
            self.code: FilterCode = compile_terms(
                terms, access, counters, None if members is None else members.fileno()
            )
            self.program: Program = stack.enter_context(_load_program(self.code))
            self._owned = stack.pop_all()

    def attach(self, event: EventDescriptor) -> None:
        """Filter the samples of `event` until this is closed.

        Raises:
            AttachError: EEXIST, the event runs a program already; EINVAL, it takes none.
        """
        self._owned.enter_context(self.program.attach(event, enable=False))

    def counts(self) -> tuple[int, ...]:
        """Samples kept, and those that each term rejected first."""
        counts = self._counts()
        return counts[:-1] if self._has_members else counts

    @property
    def outside(self) -> int:
        """Samples of processes that are not members."""
        return self._counts()[-1] if self._has_members else 0

    def _counts(self) -> tuple[int, ...]:
        value = self._counters[0]
        row = struct.Struct(f"={self._count}Q")
        rows = (row.unpack_from(value, at) for at in range(0, len(value), self._stride))
        return tuple(map(sum, zip(*rows, strict=True)))

    def close(self) -> None:
        """Detach and free everything. Twice is harmless."""
        self._owned.close()


def _load_program(code: FilterCode) -> Program:
    kind = bpf_prog_type.BPF_PROG_TYPE_PERF_EVENT
    call = LoadCall(kind, pack(list(code.instructions)), "GPL", {}, _NAME.encode())
    result, log = attempt(call, 0)
    if isinstance(result, Descriptor):
        return Program(result, _NAME, kind)
    if result.errno in (errno.EPERM, errno.EACCES) and not log:
        from purebpf.loader.host.privilege import explain_eperm

        raise explain_eperm(result, "a filter program", "CAP_BPF", "CAP_PERFMON")
    if log:
        from purebpf.loader.load.verifier import explain

        raise VerifierError(_NAME, result.errno or 0, log=log, line=explain(log)[0])
    raise result
