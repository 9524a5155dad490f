"""CO-RE: finds the fields, types and enumerators of a compiled program in another BTF.

A program is compiled against its own ("local") copy of kernel types. Each place that depends on
one has a relocation, and matching finds the same thing in the kernel's ("target") BTF:

1. Candidates are the target types of the same kind and the same name, `___flavours` aside: in the
   first target (vmlinux), or, when it has none, in all the others (modules).
2. The path of the relocation is followed through every candidate; candidates where it leads nowhere
   drop out, for this relocation and, if any candidate remains, for all later ones of the same local
   type.
3. Those left must agree: in the bit offset and in the resulting number.

Source: bpf_core_calc_relo_insn() in libbpf's relo_core.c, which decides the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from purebpf.abi.bpf import bpf_core_relo_kind
from purebpf.btf.core.access import (
    ENUM_KINDS,
    FIELD_KINDS,
    Access,
    describe_type,
    follow,
    is_anonymous,
    parse,
)
from purebpf.btf.core.value import Value, evaluate, is_resizable
from purebpf.btf.types.kinds import Kind
from purebpf.btf.types.parse import Btf
from purebpf.errors import CoreRelocationError
from purebpf.tuples import NamedTuple

__all__ = ["CoreMatcher", "CoreResult", "Targets", "match"]

Targets = Iterable[Btf] | Callable[[], Iterable[Btf]]
"""The BTF to match against, vmlinux first; a callable or a generator is only asked when needed."""

_ENUMS = (Kind.ENUM, Kind.ENUM64)


class Relocation(Protocol):
    """The fields of a relocation that matching reads (`purebpf.spec.CoreRelocation` is one)."""

    @property
    def type_id(self) -> int:
        """The local type."""

    @property
    def access(self) -> str:
        """The path through it, "0:1:2"."""

    @property
    def kind(self) -> int:
        """The question: enum bpf_core_relo_kind."""


class CoreResult(NamedTuple):
    """The value to write into the instruction of a relocation, and its reason.

    Attributes:
        kind: enum bpf_core_relo_kind.
        what: the request of the program, as C: `struct task_struct.__state`.
        found: the match, as C with its place; "" when there is none.
        value: the number to write; meaningless when `problem` is set.
        local_value: the number that the compiler wrote.
        is_checked: whether the instruction must hold `local_value`.
        problem: why there is no number, so that the instruction has to be poisoned; or "".
        local_size: bytes that a load of the local field reads; 0 when its width is open.
        size: bytes that a load of the target field reads.
        misfit: the reason why a load or store of `size` bytes is impossible, which poisons it; or
            "".
    """

    kind: int
    what: str
    found: str
    value: int
    local_value: int
    is_checked: bool = True
    problem: str = ""
    local_size: int = 0
    size: int = 0
    misfit: str = ""

    def explain(self) -> str:
        """The result as a sentence: `struct task_struct.__state: no such field on this kernel`."""
        if self.problem:
            return f"{self.what}: {self.problem}"
        name = bpf_core_relo_kind(self.kind).name.removeprefix("BPF_CORE_").lower()
        place = f" ({self.found})" if self.found else ""
        return f"{self.what}: {name} is {self.value}{place}, {self.local_value} when compiled"

    def explain_poison(self) -> str:
        """Why an instruction with this relocation is poisoned; misfits poison loads and stores."""
        return f"{self.what}: {self.problem or self.misfit}"


def match(local: Btf, relocations: Iterable[Relocation], targets: Targets) -> list[CoreResult]:
    """Match relocations against target types; one result for each, in order.

    Args:
        local: the object's BTF.
        relocations: as they are in .BTF.ext.
        targets: vmlinux's BTF, then the BTF of modules.

    Raises:
        FormatError: a type id or access string that `local` cannot satisfy, or malformed BTF.
        CoreRelocationError: candidates that disagree, or a relocation of a nameless type.
    """
    matcher = CoreMatcher(local, targets)
    return [matcher.match(relocation) for relocation in relocations]


class CoreMatcher:
    """Matching for one object: candidates are shared, and narrowed, by all its relocations."""

    def __init__(self, local: Btf, targets: Targets) -> None:
        self._local = local
        self._targets = _Lazy(targets)
        self._types: dict[int, _LocalType] = {}

    def match(self, relocation: Relocation) -> CoreResult:
        """The result for one relocation. Raises as `purebpf.btf.core.matching.match` does."""
        local_type = self._types.setdefault(relocation.type_id, _LocalType())
        question = (relocation.access, relocation.kind)
        if question not in local_type.results:
            result = self._match(local_type, relocation.type_id, *question)
            local_type.results[question] = result
        return local_type.results[question]

    def _match(self, local_type: _LocalType, type_id: int, access: str, kind: int) -> CoreResult:
        local = parse(self._local, type_id, access, kind)
        value = evaluate(local)
        if kind == bpf_core_relo_kind.BPF_CORE_TYPE_ID_LOCAL:
            return CoreResult(kind, str(local), str(local), type_id, type_id, is_checked=False)
        if is_anonymous(self._local, type_id):
            raise CoreRelocationError(f"{local}: a type without a name cannot be relocated")
        if local_type.candidates is None:
            local_type.candidates = self._search(type_id)
        matches = []
        survivors = []
        for candidate in local_type.candidates:
            target = follow(local, *candidate)
            if target is not None:
                matches.append(_Match(target, evaluate(target)))
                survivors.append(candidate)
        if not matches:
            return _not_found(local, value, has_candidates=bool(local_type.candidates))
        _check_agreement(local, matches)
        local_type.narrow(survivors)
        return _resolve(local, value, matches[0])

    def _search(self, type_id: int) -> list[Candidate]:
        name = self._local.name(type_id)
        kind = self._local.kind(type_id)
        kinds = _ENUMS if kind in _ENUMS else (kind,)
        candidates: list[Candidate] = []
        for number, target in enumerate(self._targets):
            # What a module shares with vmlinux was looked at before.
            first = len(target.base) if number and target.base is not None else 1
            ids = target.find_essential(name, *kinds)
            candidates += [Candidate(target, found_id) for found_id in ids if found_id >= first]
            if candidates and number == 0:
                break
        return candidates


class Candidate(NamedTuple):
    """A target type that may be the local one."""

    btf: Btf
    type_id: int


class _LocalType:
    """The remaining candidates of a local type (None before the search), and their answers."""

    __slots__ = ("candidates", "results")

    def __init__(self) -> None:
        self.candidates: list[Candidate] | None = None
        self.results: dict[tuple[str, int], CoreResult] = {}

    def narrow(self, survivors: list[Candidate]) -> None:
        """Forget candidates and their answers: widths are the first one's, not agreed on."""
        if self.candidates != survivors:
            self.candidates = survivors
            self.results.clear()


class _Match(NamedTuple):
    access: Access
    value: Value

    @property
    def place(self) -> str:
        """The match as C, and the type id that tells it from its namesakes."""
        btf, root = self.access.btf, self.access.root
        return f"{self.access} of type {root} in {btf.source}"


class _Lazy:
    """Targets, each obtained when first reached and then kept."""

    def __init__(self, targets: Targets) -> None:
        self._targets = targets
        self._rest: Iterator[Btf] | None = None
        self._known: list[Btf] = []

    def __iter__(self) -> Iterator[Btf]:
        yield from self._known
        if self._rest is None:
            self._rest = iter(self._targets() if callable(self._targets) else self._targets)
        for target in self._rest:
            self._known.append(target)
            yield target


def _check_agreement(local: Access, matches: list[_Match]) -> None:
    """Check that all matches lead to the same bit, even for an existence relocation, and the
    same number.
    """
    first = matches[0]
    for other in matches[1:]:
        if other.access.bit_offset != first.access.bit_offset:
            ends = [f"bit {match.access.bit_offset}" for match in (first, other)]
        elif other.value.number != first.value.number:
            ends = [str(match.value.number) for match in (first, other)]
        else:
            continue
        raise CoreRelocationError(
            f"{local}: ambiguous on this kernel: {first.place} gives {ends[0]}, "
            f"{other.place} gives {ends[1]}"
        )


def _resolve(local: Access, value: Value, match: _Match) -> CoreResult:
    target = match.value
    misfit = ""
    if value.size != target.size and not is_resizable(
        local.btf, value.type_id, match.access.btf, target.type_id
    ):
        misfit = (
            f"{value.size} bytes when compiled, {target.size} on this kernel, and only loads and "
            "stores of pointers and unsigned integers can change their width"
        )
    return CoreResult(
        kind=local.kind,
        what=str(local),
        found=match.place,
        value=target.number,
        local_value=value.number,
        is_checked=value.checkable,
        local_size=value.size,
        size=target.size,
        misfit=misfit,
    )


_ABSENT_IS_ZERO = frozenset(bpf_core_relo_kind) - FIELD_KINDS - ENUM_KINDS | {
    bpf_core_relo_kind.BPF_CORE_FIELD_EXISTS,
    bpf_core_relo_kind.BPF_CORE_ENUMVAL_EXISTS,
}
"""Kinds that have an answer without a match; of the others, the instruction is poisoned."""


def _not_found(local: Access, value: Value, *, has_candidates: bool) -> CoreResult:
    part = "enumerator" if local.kind in ENUM_KINDS else "field"
    missing = f"such {part}" if has_candidates else describe_type(local.btf, local.root)
    problem = "" if local.kind in _ABSENT_IS_ZERO else f"no {missing} on this kernel"
    return CoreResult(
        kind=local.kind,
        what=str(local),
        found="",
        value=0,
        local_value=value.number,
        is_checked=value.checkable,
        problem=problem,
    )
