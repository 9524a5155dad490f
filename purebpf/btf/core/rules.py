"""When a local type and a target type count as the same one: the three comparisons of CO-RE.

- `fields_agree`: may a member stand for another? Almost anything goes, the name has matched.
- `types_agree` (TYPE_EXISTS, TYPE_SIZE, TYPE_ID_TARGET): shallow, by kind.
- `types_match` (TYPE_MATCHES): deep, by the names of members and enumerators, but a struct behind
  a pointer is only compared by name and kind.

All skip typedefs and modifiers on both sides. Names are compared without their `___flavour`. The
rules equal the ones in libbpf's relo_core.c, with the same limits on nesting.
"""

from __future__ import annotations

from purebpf.btf.types.kinds import (
    Array,
    Enum,
    Enum64,
    FuncProto,
    Fwd,
    Int,
    Kind,
    Member,
    Ptr,
    Struct,
    Type,
    Union,
    Void,
)
from purebpf.btf.types.parse import Btf, essential_name
from purebpf.errors import CoreRelocationError

MAX_NESTING = 32
"""How many pointers and arrays in a row, and how many members within members, are followed."""

_ENUMS = frozenset({Kind.ENUM, Kind.ENUM64})
_COMPOSITES = frozenset({Kind.STRUCT, Kind.UNION})
_ALIKE = frozenset({Kind.PTR, Kind.FLOAT})


def kinds_agree(local: Kind, target: Kind) -> bool:
    """The same kind, where enum and enum64 are one."""
    return local == target or (local in _ENUMS and target in _ENUMS)


def _agree_by_name(local: str, target: str) -> bool:
    return essential_name(local) == essential_name(target)


def fields_agree(local: Btf, local_id: int, target: Btf, target_id: int) -> bool:
    """Return True if a target member of type `target_id` can replace a local one of `local_id`."""
    for _ in range(MAX_NESTING):
        local_id, target_id = local.resolve(local_id), target.resolve(target_id)
        kind, target_kind = local.kind(local_id), target.kind(target_id)
        if kind in _COMPOSITES and target_kind in _COMPOSITES:
            return True
        if not kinds_agree(kind, target_kind):
            return False
        if kind in _ALIKE:
            return True
        local_type, target_type = local.type(local_id), target.type(target_id)
        match local_type, target_type:
            case ((Fwd() | Enum() | Enum64()), _):
                either_nameless = not local_type.name or not target_type.name
                return either_nameless or _agree_by_name(local_type.name, target_type.name)
            case Int(), Int():
                return local_type.offset == 0 == target_type.offset
            case Array(), Array():
                local_id, target_id = local_type.element, target_type.element
            case _:
                return False
    raise _too_deep(local, local_id)


def types_agree(local: Btf, local_id: int, target: Btf, target_id: int) -> bool:
    """The shallow comparison of two types with the same name."""
    return _Agreement(local, target).holds(local_id, target_id, MAX_NESTING)


def types_match(local: Btf, local_id: int, target: Btf, target_id: int) -> bool:
    """The deep comparison of two types with the same name (BPF_CORE_TYPE_MATCHES)."""
    return _TypesMatch(local, target).holds(local_id, target_id, MAX_NESTING, behind_pointer=False)


def _too_deep(btf: Btf, type_id: int) -> CoreRelocationError:
    return CoreRelocationError(
        f"{btf.source}: type [{type_id}]: nested more than {MAX_NESTING} deep"
    )


class _Agreement:
    """One run of `types_agree`; remembers pairs, or a prototype of prototypes never ends."""

    def __init__(self, local: Btf, target: Btf) -> None:
        self._local = local
        self._target = target
        self._known: dict[tuple[int, int], bool] = {}

    def holds(self, local_id: int, target_id: int, levels: int) -> bool:
        if levels < 0:
            raise _too_deep(self._local, local_id)
        key = (local_id, target_id)
        if key not in self._known:
            self._known[key] = self._compare(local_id, target_id, levels)
        return self._known[key]

    def _compare(self, local_id: int, target_id: int, levels: int) -> bool:
        for _ in range(MAX_NESTING):
            local_type = self._local.type(self._local.resolve(local_id))
            target_type = self._target.type(self._target.resolve(target_id))
            if not kinds_agree(local_type.kind, target_type.kind):
                return False
            match local_type, target_type:
                case ((Void() | Struct() | Union() | Enum() | Enum64() | Fwd()), _):
                    return True
                case Int(), Int():
                    return local_type.offset == 0 == target_type.offset
                case Ptr(), Ptr():
                    local_id, target_id = local_type.type_id, target_type.type_id
                case Array(), Array():
                    local_id, target_id = local_type.element, target_type.element
                case FuncProto(), FuncProto():
                    if not self._parameters_agree(local_type, target_type, levels):
                        return False
                    local_id, target_id = local_type.return_type, target_type.return_type
                case _:
                    return False
        raise _too_deep(self._local, local_id)

    def _parameters_agree(self, local: FuncProto, target: FuncProto, levels: int) -> bool:
        return len(local.params) == len(target.params) and all(
            self.holds(mine.type_id, theirs.type_id, levels - 1)
            for mine, theirs in zip(local.params, target.params, strict=True)
        )


class _TypesMatch:
    """One run of `types_match`; remembers pairs, as members of members repeat."""

    def __init__(self, local: Btf, target: Btf) -> None:
        self._local = local
        self._target = target
        self._known: dict[tuple[int, int, bool], bool] = {}

    def holds(self, local_id: int, target_id: int, levels: int, *, behind_pointer: bool) -> bool:
        if levels <= 0:
            raise _too_deep(self._local, local_id)
        key = (local_id, target_id, behind_pointer)
        if key not in self._known:
            self._known[key] = self._compare(local_id, target_id, levels, behind_pointer)
        return self._known[key]

    def _compare(self, local_id: int, target_id: int, levels: int, behind_pointer: bool) -> bool:
        for _ in range(MAX_NESTING):
            local_type = self._local.type(self._local.resolve(local_id))
            target_type = self._target.type(self._target.resolve(target_id))
            if not _agree_by_name(local_type.name, target_type.name):
                return False
            match local_type, target_type:
                case Ptr(), Ptr():
                    behind_pointer = True
                    local_id, target_id = local_type.type_id, target_type.type_id
                case Array(), Array():
                    if local_type.count != target_type.count:
                        return False
                    local_id, target_id = local_type.element, target_type.element
                case FuncProto(), FuncProto():
                    if not self._parameters_match(local_type, target_type, levels, behind_pointer):
                        return False
                    local_id, target_id = local_type.return_type, target_type.return_type
                case _ if behind_pointer:
                    return _pointees_match(local_type, target_type)
                case (Struct(members=mine), Struct(members=theirs)) | (
                    Union(members=mine),
                    Union(members=theirs),
                ):
                    return self._members_match(mine, theirs, levels)
                case _:
                    return _leaves_match(local_type, target_type)
        raise _too_deep(self._local, local_id)

    def _parameters_match(
        self, local: FuncProto, target: FuncProto, levels: int, behind_pointer: bool
    ) -> bool:
        return len(local.params) == len(target.params) and all(
            self.holds(mine.type_id, theirs.type_id, levels - 1, behind_pointer=behind_pointer)
            for mine, theirs in zip(local.params, target.params, strict=True)
        )

    def _members_match(
        self, local: tuple[Member, ...], target: tuple[Member, ...], levels: int
    ) -> bool:
        return len(local) <= len(target) and all(
            any(
                self.holds(mine.type_id, theirs.type_id, levels - 1, behind_pointer=False)
                for theirs in target
                if _agree_by_name(mine.name, theirs.name)
            )
            for mine in local
        )


def _pointees_match(local: Type, target: Type) -> bool:
    """Behind a pointer a forward declaration matches its struct or union, and the reverse."""
    match local, target:
        case (Struct(), Struct()) | (Union(), Union()):
            return True
        case (Struct() | Union(), Fwd()):
            return target.is_union == (local.kind == Kind.UNION)
        case (Fwd(), Struct() | Union()):
            return local.is_union == (target.kind == Kind.UNION)
        case _:
            return _leaves_match(local, target)


def _leaves_match(local: Type, target: Type) -> bool:
    match local, target:
        case Void(), Void():
            return True
        case Fwd(), Fwd():
            return local.is_union == target.is_union
        case Int(), Int():
            return local.size == target.size and local.signed == target.signed
        case ((Enum() | Enum64()), (Enum() | Enum64())):
            return _enumerators_match(local, target)
        case _:
            return False


def _enumerators_match(local: Enum | Enum64, target: Enum | Enum64) -> bool:
    """Every local enumerator has a namesake in the target; the values may differ."""
    if local.size != target.size or len(local.values) > len(target.values):
        return False
    names = {essential_name(value.name) for value in target.values}
    return all(essential_name(value.name) in names for value in local.values)
