"""Samples by struct, member and function. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from purebpf.dataflow.slab_evidence import Verdict
from purebpf.results import Loss
from purebpf.tools.types.layouts import Layout, element_of, layout_of, signature
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.dataflow.claims import Claim
    from purebpf.dataflow.types import Type

__all__ = ["DataTypes", "MemberHeat", "SlabFigures", "StructHeat", "Tally"]


class MemberHeat(NamedTuple):
    """A member: its place in bytes, and the samples that touch it.

    Attributes:
        reads, writes: samples at instructions that do so; an update in place does both.
        inferred: samples that an index or a moved pointer led to.
        functions: samples by function.
    """

    name: str
    offset: int
    size: int
    samples: int
    reads: int
    writes: int
    inferred: int
    functions: dict[str, int]


class StructHeat(NamedTuple):
    """A type, and its touched members, the hottest first; `size` in bytes."""

    name: str
    size: int
    samples: int
    members: tuple[MemberHeat, ...]
    layout: Layout


class SlabFigures(NamedTuple):
    """The samples whose kernel address is in a slab cache of a known struct.

    Attributes:
        right, wrong: the type by the code agrees with the cache, or does not.
        typed: the type is from the cache.
    """

    right: int = 0
    wrong: int = 0
    typed: int = 0


class DataTypes(NamedTuple):
    """The result of a run.

    Attributes:
        structs: the hottest first.
        samples: all of them.
        reasons: samples without a type, by reason.
        event: the words for the sampled event.
        loss: the losses of the sampling.
        is_precise: the event points at the instruction that caused it.
        slabs: the evidence of the kernel's allocator.
    """

    structs: tuple[StructHeat, ...]
    samples: int
    reasons: dict[str, int]
    event: str
    loss: Loss
    is_precise: bool = False
    slabs: SlabFigures = SlabFigures()

    @property
    def typed(self) -> int:
        """The samples with a type."""
        return sum(struct.samples for struct in self.structs)

    @property
    def inferred(self) -> int:
        """The typed samples at elements of arrays, which keep to their type if the program does."""
        return sum(member.inferred for struct in self.structs for member in struct.members)


class _Counts:
    """The samples of one member."""

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self.samples = self.reads = self.writes = self.inferred = 0
        self.functions: Counter[str] = Counter()

    def add(self, claim: Claim, function: str, samples: int) -> None:
        self.samples += samples
        self.reads += samples if claim.access.reads else 0
        self.writes += samples if claim.access.writes else 0
        self.inferred += samples if claim.is_inferred else 0
        self.functions[function] += samples

    def heat(self) -> MemberHeat:
        claim = self.claim
        return MemberHeat(
            claim.member, claim.offset, claim.size, self.samples, self.reads, self.writes,
            self.inferred, dict(self.functions.most_common()),
        )  # fmt: skip


class Tally:
    """Adds up claims. Types of one name and one layout, in several units or files, are one."""

    def __init__(self) -> None:
        self.samples = 0
        self.reasons: Counter[str] = Counter()
        self._verdicts: Counter[Verdict] = Counter()
        self._members: dict[Hashable, dict[str, _Counts]] = defaultdict(dict)
        self._types: dict[Hashable, Type | None] = {}

    def add(self, claim: Claim | str, function: str, samples: int) -> None:
        """Add samples that touch a member, or that have no type for a reason."""
        self.samples += samples
        if isinstance(claim, str):
            self.reasons[claim] += samples
            return
        record = element_of(claim.type)
        key = (claim.name, signature(record))
        self._types.setdefault(key, record)
        name = (
            claim.member.removeprefix("[]").removeprefix(".")
            if record is not claim.type
            else claim.member
        )
        member = claim._replace(member=name)
        counts = self._members[key].setdefault(name, _Counts(member))
        counts.add(member, function, samples)

    def judge(self, verdict: Verdict, samples: int) -> None:
        """Add the judgement of a slab cache about samples."""
        self._verdicts[verdict] += samples

    def finish(self, event: str, loss: Loss, *, is_precise: bool = False) -> DataTypes:
        """Return the result."""
        structs = [
            _struct(
                key, (counts.heat() for counts in members.values()), layout_of(self._types[key])
            )
            for key, members in self._members.items()
        ]
        structs.sort(key=lambda struct: (-struct.samples, struct.name))
        reasons = dict(self.reasons.most_common())
        figures = (self._verdicts[one] for one in (Verdict.RIGHT, Verdict.WRONG, Verdict.TYPED))
        return DataTypes(
            *(tuple(structs), self.samples, reasons, event, loss, is_precise),
            SlabFigures(*figures),
        )


def _struct(key: Hashable, members: Iterable[MemberHeat], layout: Layout) -> StructHeat:
    assert isinstance(key, tuple)
    ranked = sorted(members, key=lambda member: (-member.samples, member.offset))
    total = sum(member.samples for member in ranked)
    return StructHeat(key[0], layout.size, total, tuple(ranked), layout)
