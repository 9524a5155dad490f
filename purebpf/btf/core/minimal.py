"""The part of a kernel's BTF that the CO-RE relocations of some objects look at.

For hosts without BTF: build the file where the kernel's BTF is available, from BTFHub for example,
and ship it with the object. Structs keep the required members, by name, and their sizes; pointers
lose their targets. The result is checked: every relocation matches as before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from purebpf.abi.bpf import bpf_core_relo_kind
from purebpf.btf.core.access import ENUM_KINDS, parse
from purebpf.btf.core.matching import CoreResult, Relocation, match
from purebpf.btf.types import kinds as types
from purebpf.btf.types.kinds import Kind
from purebpf.btf.types.parse import Btf, essential_name
from purebpf.btf.types.write import write_btf
from purebpf.errors import CoreRelocationError
from purebpf.tuples import NamedTuple

__all__ = ["Wanted", "minimise"]

_DEEP = frozenset(
    {
        bpf_core_relo_kind.BPF_CORE_TYPE_EXISTS,
        bpf_core_relo_kind.BPF_CORE_TYPE_SIZE,
        bpf_core_relo_kind.BPF_CORE_TYPE_ID_TARGET,
        bpf_core_relo_kind.BPF_CORE_TYPE_MATCHES,
    }
)
"""Kinds that compare what pointers and functions are made of."""
_ENUMS = (Kind.ENUM, Kind.ENUM64)


class Wanted(NamedTuple):
    """An object's types, and its relocations."""

    local: Btf
    relocations: Sequence[Relocation]


def minimise(kernel: Btf, objects: Iterable[Wanted]) -> bytes:
    """Return BTF that gives the relocations of these objects the same results as all of it.

    But for BPF_CORE_TYPE_ID_TARGET: types have other numbers, and a kernel without BTF has none.

    Args:
        kernel: the BTF of the kernel that the objects will run on, without a base.
        objects: at least one.

    Raises:
        FormatError: malformed BTF, or a relocation that its object cannot satisfy.
        CoreRelocationError: candidates that disagree, or a result that would be another.
    """
    every = list(objects)
    picker = _Picker(kernel)
    for local, relocations in every:
        for relocation in relocations:
            picker.want(local, relocation)
    made = picker.write()
    smaller = Btf(made, source=f"minimal {kernel.source}")
    for local, relocations in every:
        before, after = (match(local, relocations, [btf]) for btf in (kernel, smaller))
        for one, other in zip(before, after, strict=True):
            if _answer(one) != _answer(other):
                raise CoreRelocationError(f"{one.explain()}; but {other.explain()} by fewer types")
    return made


def _answer(result: CoreResult) -> CoreResult:
    """Return the values for instructions, without numbers of types."""
    of_id = result.kind == bpf_core_relo_kind.BPF_CORE_TYPE_ID_TARGET
    return result._replace(found="", value=bool(result.value) if of_id else result.value)


class _Picker:
    """Collects names, then the types that need them, then writes these types."""

    def __init__(self, kernel: Btf) -> None:
        self._kernel = kernel
        self._names: set[str] = set()
        self._roots: dict[int, bool] = {}
        self._whole: set[int] = set()
        self._used: set[int] = set()
        self._pointing: set[int] = set()

    def want(self, local: Btf, relocation: Relocation) -> None:
        """Add the requests of a relocation, for every type with the name of the local one."""
        kind = relocation.kind
        if kind == bpf_core_relo_kind.BPF_CORE_TYPE_ID_LOCAL:
            return
        steps = parse(local, relocation.type_id, relocation.access, kind).steps
        names = {step.name for step in steps if step.name}
        self._names |= {essential_name(name) for name in names} if kind in ENUM_KINDS else names
        own = local.kind(relocation.type_id)
        kinds = _ENUMS if own in _ENUMS else (own,)
        for type_id in self._kernel.find_essential(local.name(relocation.type_id), *kinds):
            is_deep = self._roots.get(type_id, False) or kind in _DEEP
            self._roots[type_id] = is_deep
            if kind == bpf_core_relo_kind.BPF_CORE_TYPE_MATCHES:
                self._whole.add(self._kernel.resolve(type_id))

    def write(self) -> bytes:
        """The types, in their order."""
        todo = list(self._roots.items())
        done: set[tuple[int, bool]] = set()
        while todo:
            type_id, is_deep = item = todo.pop()
            if type_id and item not in done:
                done.add(item)
                self._used.add(type_id)
                todo += self._parts(type_id, is_deep=is_deep)
        numbers = {type_id: number for number, type_id in enumerate(sorted(self._used), 1)}
        return write_btf(
            (self._smaller(type_id, numbers) for type_id in numbers),
            "<" if self._kernel.byteorder == "little" else ">",
        )

    def _parts(self, type_id: int, *, is_deep: bool) -> list[tuple[int, bool]]:
        """Yield the types of a type's parts; of structs only the required members."""
        one = self._kernel.type(type_id)
        match one:
            case types.Struct() | types.Union():
                deep = is_deep and type_id in self._whole
                return [(member.type_id, deep) for member in self._members(type_id, one)]
            case types.Array():
                return [(one.element, is_deep), (one.index, False)]
            case types.Ptr():
                self._pointing |= {type_id} if is_deep else set()
                return [(one.type_id, True)] if is_deep else []
            case types.FuncProto():
                return [(to, is_deep) for to in (one.return_type, *(to for _, to in one.params))]
            case types.Typedef() | types.Const() | types.Volatile() | types.Restrict():
                return [(one.type_id, is_deep)]
            case types.TypeTag():
                return [(one.type_id, is_deep)]
            case _:
                return []

    def _members(self, type_id: int, one: types.Struct | types.Union) -> list[types.Member]:
        if type_id in self._whole:
            return list(one.members)
        return [m for m in one.members if not m.name or m.name in self._names]

    def _smaller(self, type_id: int, numbers: dict[int, int]) -> types.Type:
        """The type as it is written."""
        one = self._kernel.type(type_id)
        match one:
            case types.Struct() | types.Union():
                kept = self._members(type_id, one)
                members = tuple(m._replace(type_id=numbers.get(m.type_id, 0)) for m in kept)
                return one._replace(members=members)
            case types.Enum() | types.Enum64():
                return one if type_id in self._whole else self._fewer(one)
            case types.Array():
                return one._replace(element=numbers[one.element], index=numbers.get(one.index, 0))
            case types.Ptr():
                kept_to = numbers.get(one.type_id, 0) if type_id in self._pointing else 0
                return one._replace(type_id=kept_to)
            case types.FuncProto():
                params = tuple(p._replace(type_id=numbers.get(p.type_id, 0)) for p in one.params)
                return one._replace(return_type=numbers.get(one.return_type, 0), params=params)
            case types.Typedef() | types.Const() | types.Volatile() | types.Restrict():
                return one._replace(type_id=numbers.get(one.type_id, 0))
            case types.TypeTag():
                return one._replace(type_id=numbers.get(one.type_id, 0))
            case _:
                return one

    def _fewer(self, one: types.Enum | types.Enum64) -> types.Type:
        values = tuple(value for value in one.values if essential_name(value.name) in self._names)
        return one._replace(values=values)
