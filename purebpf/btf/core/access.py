"""The target of a CO-RE relocation: a path through a type, given by number, followed by name.

The compiler writes a path as numbers ("0:1:2": element 0 of the pointer's target, its member 1,
then that member's member or element 2). `parse` reads it against the local types and keeps the
turns that have a meaning; `follow` takes the same turns through a target type, where it searches
members by name, also in nameless structs and unions on the way.
"""

from __future__ import annotations

from collections.abc import Callable

from purebpf.abi.bpf import bpf_core_relo_kind
from purebpf.btf.core.rules import fields_agree, types_agree, types_match
from purebpf.btf.types.kinds import Array, Enum, Enum64, Fwd, Kind, Member
from purebpf.btf.types.parse import Btf, essential_name
from purebpf.btf.types.struct_members import count_members, find_members, has_members, read_member
from purebpf.errors import CoreRelocationError, FormatError
from purebpf.tuples import NamedTuple

MAX_DEPTH = 64
"""The longest path, nameless levels included (BPF_CORE_SPEC_MAX_LEN)."""

FIELD_KINDS = frozenset(
    {
        bpf_core_relo_kind.BPF_CORE_FIELD_BYTE_OFFSET,
        bpf_core_relo_kind.BPF_CORE_FIELD_BYTE_SIZE,
        bpf_core_relo_kind.BPF_CORE_FIELD_EXISTS,
        bpf_core_relo_kind.BPF_CORE_FIELD_SIGNED,
        bpf_core_relo_kind.BPF_CORE_FIELD_LSHIFT_U64,
        bpf_core_relo_kind.BPF_CORE_FIELD_RSHIFT_U64,
    }
)
ENUM_KINDS = frozenset(
    {
        bpf_core_relo_kind.BPF_CORE_ENUMVAL_EXISTS,
        bpf_core_relo_kind.BPF_CORE_ENUMVAL_VALUE,
    }
)

_INDEX_DIGITS = 10
_INDEX_LIMIT = 1 << 31


class Step(NamedTuple):
    """A turn with a meaning.

    With a `name`: member (or enumerator) `number` of struct (or enum) `type_id`.
    Without: element `number`, which is of type `type_id`.
    """

    type_id: int
    number: int
    name: str | None = None


class Access(NamedTuple):
    """A path from `root`, and where it ends, in bits from the root's start."""

    btf: Btf
    root: int
    kind: int
    steps: tuple[Step, ...] = ()
    bit_offset: int = 0

    def __str__(self) -> str:
        """The path as C would write it: `struct task_struct.pids[1]`."""
        text = describe_type(self.btf, self.root)
        for depth, step in enumerate(self.steps):
            if self.kind in ENUM_KINDS:
                text += f"::{step.name}"
            elif step.name is not None:
                text += f".{step.name}"
            elif depth or step.number:
                text += f"[{step.number}]"
        return text


def describe_type(btf: Btf, type_id: int) -> str:
    """A type as C would write it: `struct task_struct`, `size_t`."""
    name = btf.name(type_id) or "<anonymous>"
    match btf.kind(type_id):
        case Kind.STRUCT:
            return f"struct {name}"
        case Kind.UNION:
            return f"union {name}"
        case Kind.FWD:
            declared = btf.type(type_id)
            assert isinstance(declared, Fwd)
            return f"{'union' if declared.is_union else 'struct'} {name}"
        case Kind.ENUM | Kind.ENUM64:
            return f"enum {name}"
        case _:
            return name


# Reading a local path


def parse(local: Btf, type_id: int, access: str, kind: int) -> Access:
    """The path that `access` describes, from type `type_id` of `local`.

    Raises:
        FormatError: it is not a list of numbers, leads out of its type, or does not suit `kind`.
    """
    try:
        indices = _parse_indices(access)
        if kind in FIELD_KINDS:
            return _parse_field(local, type_id, kind, indices)
        if kind in ENUM_KINDS:
            return _parse_enumerator(local, type_id, kind, indices)
        return _parse_type(local, type_id, kind, indices)
    except _Astray as astray:
        where = f"CO-RE access {access!r} of type {type_id}"
        raise FormatError(local.source, where, str(astray)) from None


class _Astray(Exception):  # noqa: N818 - caught by parse, which knows the place
    """A path that leads out of its type."""


def _parse_indices(access: str) -> list[int]:
    parts = access.split(":")
    if len(parts) > MAX_DEPTH:
        raise _Astray(f"{len(parts)} levels are more than {MAX_DEPTH}")
    if not all(p.isascii() and p.isdigit() and len(p) <= _INDEX_DIGITS for p in parts):
        raise _Astray("not a list of numbers like '0:1:2'")
    indices = [int(part) for part in parts]
    if max(indices) >= _INDEX_LIMIT:
        raise _Astray("an index of 2^31 or more")
    return indices


def _parse_type(local: Btf, type_id: int, kind: int, indices: list[int]) -> Access:
    if indices != [0]:
        raise _Astray("a whole type has the path '0'")
    return Access(local, type_id, kind)


def _parse_enumerator(local: Btf, type_id: int, kind: int, indices: list[int]) -> Access:
    enum_id = local.resolve(type_id)
    enum = local.type(enum_id)
    if not isinstance(enum, Enum | Enum64):
        raise _Astray(f"an enumerator of a {enum.kind.name}")
    if len(indices) != 1 or indices[0] >= len(enum.values):
        raise _Astray(f"no such enumerator among {len(enum.values)}")
    step = Step(enum_id, indices[0], enum.values[indices[0]].name)
    return Access(local, type_id, kind, (step,))


def _parse_field(local: Btf, type_id: int, kind: int, indices: list[int]) -> Access:
    current = local.resolve(type_id)
    steps = [Step(current, indices[0])]
    bit_offset = indices[0] * local.sizeof(current) * 8
    for index in indices[1:]:
        if has_members(local, current):
            if index >= (count := count_members(local, current)):
                raise _Astray(f"member {index} of {count}")
            member = read_member(local, current, index)
            if member.name:
                steps.append(Step(current, index, member.name))
            bit_offset += member.bit_offset
            current = local.resolve(member.type_id)
            continue
        container = local.type(current)
        if isinstance(container, Array):
            if not _in_bounds(local, steps[-1], container, index):
                raise _Astray(f"element {index} of {container.count}")
            current = local.resolve(container.element)
            steps.append(Step(current, index))
            bit_offset += index * local.sizeof(current) * 8
        else:
            raise _Astray(f"an element or member of a {container.kind.name}")
    return Access(local, type_id, kind, tuple(steps), bit_offset)


def _in_bounds(btf: Btf, reached_by: Step, array: Array, index: int) -> bool:
    """Return True if the array has the element; the flexible last member of a struct has them
    all.
    """
    if index < array.count:
        return True
    if array.count or reached_by.name is None:
        return False
    owner = reached_by.type_id
    return has_members(btf, owner) and reached_by.number == count_members(btf, owner) - 1


# Following it through a target


def follow(local: Access, target: Btf, target_id: int) -> Access | None:
    """The same path through type `target_id` of `target`, or None where it leads nowhere.

    Raises:
        CoreRelocationError: a path of more than 64 levels, or types nested deeper than 32.
        FormatError: `target` is malformed.
    """
    if local.kind in FIELD_KINDS:
        return _follow_field(local, target, target_id)
    if local.kind in ENUM_KINDS:
        return _follow_enumerator(local, target, target_id)
    agree: Callable[[Btf, int, Btf, int], bool] = (
        types_match if local.kind == bpf_core_relo_kind.BPF_CORE_TYPE_MATCHES else types_agree
    )
    if not agree(local.btf, local.root, target, target_id):
        return None
    return Access(target, target_id, local.kind)


def _follow_enumerator(local: Access, target: Btf, target_id: int) -> Access | None:
    enum_id = target.resolve(target_id)
    enum = target.type(enum_id)
    if not isinstance(enum, Enum | Enum64):
        return None
    wanted = essential_name(local.steps[0].name or "")
    for index, value in enumerate(enum.values):
        if value.name.startswith(wanted) and essential_name(value.name) == wanted:
            return Access(target, target_id, local.kind, (Step(enum_id, index, value.name),))
    return None


def _follow_field(local: Access, target: Btf, target_id: int) -> Access | None:
    current = target.resolve(target_id)
    first = local.steps[0]
    steps = [Step(current, first.number)]
    bit_offset = first.number * target.sizeof(current) * 8
    depth = 1
    for step in local.steps[1:]:
        if step.name is not None:
            member = _MemberSearch(local.btf, step, target).find(current, depth)
            if member is None:
                return None
            steps.append(member.step)
            bit_offset += member.bit_offset
            depth = member.depth
            current = target.resolve(member.type_id)
        else:
            array = target.type(current)
            if not isinstance(array, Array) or not _in_bounds(
                target, steps[-1], array, step.number
            ):
                return None
            depth = _deeper(target, depth)
            current = target.resolve(array.element)
            steps.append(Step(current, step.number))
            bit_offset += step.number * target.sizeof(current) * 8
    return Access(target, target_id, local.kind, tuple(steps), bit_offset)


def _deeper(target: Btf, depth: int) -> int:
    if depth >= MAX_DEPTH:
        raise CoreRelocationError(f"{target.source}: a path of more than {MAX_DEPTH} levels")
    return depth + 1


class _Found(NamedTuple):
    step: Step
    type_id: int
    bit_offset: int
    depth: int


class _MemberSearch:
    """The search for one local member by name, in a struct and the nameless ones inside it.

    A member with the name and another type ends the search of its struct, not of the structs around
    it. A struct without a match is searched once, however often it occurs.
    """

    def __init__(self, local: Btf, step: Step, target: Btf) -> None:
        self._local = local
        self._member: Member = read_member(local, step.type_id, step.number)
        self._target = target
        self._searched: set[int] = set()

    def find(self, struct_id: int, depth: int) -> _Found | None:
        """The member in struct `struct_id`, which was reached in `depth` levels."""
        if struct_id in self._searched or not has_members(self._target, struct_id):
            return None
        self._searched.add(struct_id)
        name = self._member.name
        for index, member in find_members(self._target, struct_id, name):
            if member.name:
                below = _deeper(self._target, depth)
                if not fields_agree(
                    self._local, self._member.type_id, self._target, member.type_id
                ):
                    return None
                step = Step(struct_id, index, name)
                return _Found(step, member.type_id, member.bit_offset, below)
            below = _deeper(self._target, depth)
            inner = self.find(self._target.resolve(member.type_id), below)
            if inner is not None:
                return inner._replace(bit_offset=inner.bit_offset + member.bit_offset)
        return None


def is_anonymous(btf: Btf, type_id: int) -> bool:
    """Return True if a type has no name to look for."""
    return btf.kind(type_id) == Kind.VOID or not btf.name(type_id)
