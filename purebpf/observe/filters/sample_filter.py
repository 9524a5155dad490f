"""A sample filter at work, in the best way that this kernel and this user's rights allow.

    parsed = filter.parse("comm == mysqld, cpu == 1")
    with SampleFilter(parsed, sample_type) as chosen:
        for event in events:
            chosen.attach(event)
        ...
        print(chosen.counts())

`explain()` prints the compiled filter.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import ExitStack

from purebpf.closable import Closing
from purebpf.errors import KernelError, NotSupportedError, VerifierError
from purebpf.filter.check import check
from purebpf.filter.compile import FilterCode, missing
from purebpf.filter.evaluate import predicate
from purebpf.filter.lowering import NameLookup, Term, resolve
from purebpf.filter.sample_layout import SampleAccess, from_registers, from_sample
from purebpf.filter.syntax import Filter
from purebpf.loader.maps.map import Map
from purebpf.loader.programs.link import EventDescriptor
from purebpf.loader.programs.program import Program
from purebpf.loader.types.kernel_btf import kernel_btf
from purebpf.observe.filters.compiled_filter import CompiledFilter
from purebpf.observe.filters.filter_names import MachineNames
from purebpf.observe.filters.pinned_filter import PinnedFilter
from purebpf.observe.filters.pinned_setup import tells_ancestors
from purebpf.observe.filters.pinned_slots import BPFFS
from purebpf.syscall import proc
from purebpf.tuples import NamedTuple
from purebpf.wire.perf_records import Sample

__all__ = ["Counts", "SampleFilter", "kernel_access"]


class Counts(NamedTuple):
    """The fates of the samples.

    Attributes:
        passed: samples that the filter kept.
        rejected: each term as it was written, and the samples it was the first to reject.
        undecided: those that a pinned program dropped without a verdict of this filter, since
            another process of this user's wrote to its table.
    """

    passed: int
    rejected: tuple[tuple[str, int], ...]
    undecided: int = 0

    @property
    def dropped(self) -> int:
        """Samples that some term rejected."""
        return sum(count for _, count in self.rejected)

    @property
    def seen(self) -> int:
        """All samples."""
        return self.passed + self.dropped + self.undecided


def kernel_access() -> SampleAccess:
    """Return the programs' access to the words of samples on this kernel."""
    try:
        btf = kernel_btf()
    except NotSupportedError:
        btf = None
    access = from_sample(btf) if btf is not None else None
    if access is not None:
        return access
    own = proc.in_first_namespace("pid")
    access = from_registers(btf, os.uname().machine, own_pids=own)
    return access._replace(ancestors=tells_ancestors())


class SampleFilter(Closing):
    """A filter, ready to be attached to events with this `sample_type`.

    It runs as a separate program; or, where this process may load none, in a program that root has
    pinned for this user; or, where neither can be or sees a field, in user space: `attach` then
    does nothing, `why_user_space` has the reason, and the caller calls `accepts` for each sample.

    Args:
        parsed: the filter.
        sample_type: attr.sample_type of the events.
        event: its name in errors.
        names: who knows users, cgroups and functions; by default this machine.
        in_kernel: False keeps the filter in user space whatever the kernel could do.
        bpffs: where root may have pinned programs.
        members: processes of the first PID namespace, by ID: where a program of this process's
            own filters, it drops the samples of all others.

    Attributes:
        parsed: the filter.
        terms: its terms, names looked up.
        why_user_space: why the filter runs in user space, or "".

    Raises:
        FilterError: the samples lack a field, or a name is unknown.
        NotSupportedError: this filter cannot run here in the kernel or in user space; or it is too
            long.
        VerifierError: the kernel refused the program.
        KernelError: it refused the map, or had no memory or descriptors left.
    """

    def __init__(
        self,
        parsed: Filter,
        sample_type: int,
        *,
        event: str = "this event",
        names: NameLookup | None = None,
        in_kernel: bool = True,
        bpffs: str = BPFFS,
        members: Map | None = None,
    ) -> None:
        check(parsed, sample_type, event)
        self.parsed = parsed
        self.terms: tuple[Term, ...] = resolve(parsed, sample_type, names or MachineNames())
        self.why_user_space = "" if in_kernel else "the caller chose user space"
        self._compiled: CompiledFilter | None = None
        self._pinned: PinnedFilter | None = None
        self._rejecting: Callable[[Sample], int] | None = None
        self._counts = [0] * (len(self.terms) + 1)
        with ExitStack() as stack:
            if in_kernel:
                self._load(stack, bpffs, members)
            if not self.in_kernel:
                self._rejecting = self._in_user_space()
            self._owned = stack.pop_all()

    def _load(self, stack: ExitStack, bpffs: str, members: Map | None) -> None:
        """A program that filters; or why there is none in `why_user_space`."""
        access = kernel_access()
        if absent := missing(self.terms, access):
            self.why_user_space = f"BPF programs cannot read {', '.join(absent)} on this kernel"
            return
        try:
            self._compiled = stack.enter_context(CompiledFilter(self.terms, access, members))
        except KernelError as error:
            if error.errno not in (errno.EPERM, errno.EACCES) or isinstance(error, VerifierError):
                raise
            reason = error.why or str(error)
        else:
            return
        try:
            self._pinned = stack.enter_context(PinnedFilter(self.terms, os.geteuid(), bpffs))
        except (NotSupportedError, KernelError) as error:
            self.why_user_space = f"{reason}; {error}"

    def _in_user_space(self) -> Callable[[Sample], int]:
        try:
            return predicate(self.terms)
        except NotSupportedError as error:
            reason = f"{error.reason}, and no BPF program can filter: {self.why_user_space}"
            raise NotSupportedError(f"the filter {self.parsed}", reason) from None

    @property
    def in_kernel(self) -> bool:
        """True if a program filters, so that rejected samples never reach the ring."""
        return self.program is not None

    @property
    def where(self) -> str:
        """The place where the filter runs, in words."""
        if self._compiled is not None:
            return f"a program of {len(self._compiled.code.instructions)} instructions"
        if self._pinned is not None:
            return f"the program that root pinned for this user, slot {self._pinned.number}"
        return f"user space: {self.why_user_space}"

    @property
    def program(self) -> Program | None:
        """The program, None in user space."""
        owner = self._compiled or self._pinned
        return None if owner is None else owner.program

    @property
    def code(self) -> FilterCode | None:
        """The compiled filter; None if it was not compiled."""
        return None if self._compiled is None else self._compiled.code

    def attach(self, event: EventDescriptor) -> None:
        """Filter the samples of `event`; does not enable or disable it.

        A program of this process's own is detached when the filter is closed; a pinned one with
        the event.

        Raises:
            AttachError: EEXIST, the event runs a program already; EINVAL, it takes none.
        """
        if self._compiled is not None:
            self._compiled.attach(event)
        elif self._pinned is not None:
            self._pinned.attach(event)

    @property
    def outside(self) -> int:
        """Samples that were dropped as their processes are not `members`."""
        return 0 if self._compiled is None else self._compiled.outside

    def accepts(self, sample: Sample) -> bool:
        """Return True to keep a sample; count it. Always True when the kernel filters."""
        if self._rejecting is None:
            return True
        index = self._rejecting(sample) + 1
        self._counts[index] += 1
        return index == 0

    def counts(self) -> Counts:
        """Return the fates of the samples so far.

        Raises:
            KernelError: the counters could not be read.
        """
        owner = self._compiled or self._pinned
        passed, *rejected = self._counts if owner is None else owner.counts()
        by_term = tuple(zip((term.text for term in self.terms), rejected, strict=True))
        undecided = 0 if self._pinned is None else self._pinned.undecided()
        return Counts(passed, by_term, undecided)

    def explain(self) -> str:
        """Return the parsed filter, the place where it runs, and its code."""
        lines = [f"filter: {self.parsed}", f"runs in {self.where}"]
        if self.code is not None:
            lines.append(self.code.listing())
        elif self._pinned is not None:
            lines.append(self._pinned.listing())
        return "\n".join(lines)

    def close(self) -> None:
        """Detach and free everything. Twice is harmless."""
        self._owned.close()
