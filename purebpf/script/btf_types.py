"""Kernel types from BTF as types of the language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from purebpf.btf.types.kinds import Kind
from purebpf.btf.types.parse import Btf, ids_of
from purebpf.btf.types.struct_members import find_members
from purebpf.script.types import BOOL, VOID, Member, Type, integer, pointer, string

__all__ = ["BtfTypes"]

_TRANSPARENT = (Kind.TYPEDEF, Kind.CONST, Kind.VOLATILE, Kind.RESTRICT, Kind.TYPE_TAG,
                Kind.DECL_TAG)  # fmt: skip
_KINDS: Mapping[str, tuple[Kind, ...]] = {
    "struct": (Kind.STRUCT,),
    "union": (Kind.UNION,),
    "enum": (Kind.ENUM, Kind.ENUM64),
    "": (Kind.TYPEDEF, Kind.INT),
}
_WORDS = {Kind.STRUCT: "struct ", Kind.UNION: "union ", Kind.ENUM: "enum ", Kind.ENUM64: "enum "}


class BtfTypes:
    """The types of one kernel."""

    def __init__(self, btf: Btf) -> None:
        self.btf = btf
        self._constants: dict[str, tuple[int, str]] | None = None

    def named(self, name: str) -> Type | None:
        """Find a type such as `struct file` or `size_t`; None if the kernel has none."""
        tag, _, rest = name.rpartition(" ")
        for type_id in self.btf.find(rest, *_KINDS.get(tag, ())) if tag in _KINDS else ():
            return self.type_of(type_id)
        return None

    def type_of(self, type_id: int) -> Type:
        """Return the type with an id."""
        btf = self.btf
        while type_id and btf.kind(type_id) in _TRANSPARENT:
            type_id = btf.type(type_id).type_id  # type: ignore[union-attr]
        described = btf.type(type_id)
        match described.kind:
            case Kind.INT:
                if described.is_bool:
                    return BOOL
                name = "char" if described.name == "char" else ""
                return integer(described.size, described.signed, name)
            case Kind.ENUM | Kind.ENUM64:
                name = f"enum {described.name}" if described.name else ""
                return integer(described.size, False, name)
            case Kind.PTR:
                target = described.type_id
                return pointer(self._spell(target), lambda: self.type_of(target))
            case Kind.STRUCT | Kind.UNION:
                name = _WORDS[described.kind] + (described.name or f"#{type_id}")
                layout = _BtfLayout(self, type_id)
                return Type("struct", btf.sizeof(type_id), name=name, layout=layout)
            case Kind.ARRAY:
                element = self.type_of(described.element)
                if element.name == "char":
                    return string(described.count)
                size = described.count * element.size
                return Type("array", size, count=described.count, items=(element,))
            case _:
                return VOID

    def _spell(self, type_id: int) -> str:
        described, stars = self.btf.type(type_id), ""
        while type_id:
            if described.kind == Kind.PTR:
                stars += " *"
            elif described.kind not in (Kind.CONST, Kind.VOLATILE, Kind.RESTRICT):
                break
            type_id = described.type_id
            described = self.btf.type(type_id)
        word = _WORDS.get(described.kind, "") + described.name if type_id else "void"
        return f"{word}{stars}"

    def spell_parameters(self, function: str, *, with_result: bool) -> list[str]:
        """Return each parameter of a function as C, and the result as `retval`; [] if unknown."""
        type_id = self.function(function)
        if type_id is None:
            return []
        prototype = self.btf.type(self.btf.type(type_id).type_id)  # type: ignore[union-attr]
        assert prototype.kind == Kind.FUNC_PROTO
        pairs = [(item.type_id, item.name) for item in prototype.params if item.name]
        if with_result and prototype.return_type:
            pairs.append((prototype.return_type, "retval"))
        return [f"{self._spell(type_id)} {name}" for type_id, name in pairs]

    def spell_registers(self, function: str, *, of_result: bool) -> list[str]:
        """Return each parameter as C by the number of its register; or the result only."""
        lines = self.spell_parameters(function, with_result=of_result)
        if of_result:
            return [line for line in lines[-1:] if line.endswith(" retval")]
        return [f"{line.rpartition(' ')[0]} arg{number}" for number, line in enumerate(lines)]

    def spell_members(self, name: str) -> list[str]:
        """Return each member of a structure as C: members of unions without a name, too."""
        lines = []
        for type_id in self.btf.find(name, Kind.STRUCT)[:1]:
            for member in self.btf.type(type_id).members:  # type: ignore[union-attr]
                inner = self.btf.type(member.type_id)
                if not member.name and inner.kind == Kind.UNION:
                    member = inner.members[0]  # noqa: PLW2901
                lines.append(f"{self._spell(member.type_id)} {member.name}")
        return lines

    def function(self, name: str) -> int | None:
        """Return the id of a kernel function, None if the kernel has none of this name."""
        return next(iter(self.btf.find(name, Kind.FUNC)), None)

    def constant(self, name: str) -> tuple[int, str] | None:
        """Return the value of an enumerator, and its enum's name."""
        if self._constants is None:
            self._constants = {}
            for kind in (Kind.ENUM, Kind.ENUM64):
                for type_id in ids_of(self.btf, kind):
                    described = self.btf.type(type_id)
                    for label, value in described.values:  # type: ignore[union-attr]
                        self._constants.setdefault(label, (value, described.name))
        return self._constants.get(name)

    def enumerators(self, tag: str) -> Mapping[int, str]:
        """Return the names of an enum's values."""
        for type_id in self.btf.find(tag, Kind.ENUM, Kind.ENUM64):
            described = self.btf.type(type_id)
            return {value: label for label, value in described.values}  # type: ignore[union-attr]
        return {}


class _BtfLayout:
    def __init__(self, types: BtfTypes, type_id: int) -> None:
        self._types, self._type_id = types, type_id
        self.member = cache(self._find)

    def _find(self, name: str) -> Member | None:
        return self._search(self._type_id, name, 0)

    def _search(self, type_id: int, name: str, base: int) -> Member | None:
        btf = self._types.btf
        candidates = [item for _, item in find_members(btf, type_id, name)]
        for item in candidates:
            if item.name == name:
                return self._member(item.type_id, item.bit_offset, item.bit_size, base)
        for item in candidates:
            inner = btf.resolve(item.type_id)
            if btf.kind(inner) in (Kind.STRUCT, Kind.UNION):
                found = self._search(inner, name, base + item.bit_offset // 8)
                if found is not None:
                    return found
        return None

    def _member(self, type_id: int, bit_offset: int, bits: int, base: int) -> Member:
        kind = self._types.type_of(type_id)
        unit = 8 * max(1, kind.size)
        offset = bit_offset // unit * kind.size if bits else bit_offset // 8
        return Member(base + offset, kind, bit_offset % unit if bits else 0, bits)

    def members(self) -> Sequence[tuple[str, Member]]:
        """Return the names and members."""
        described = self._types.btf.type(self._type_id)
        return [
            (item.name, self._member(item.type_id, item.bit_offset, item.bit_size, 0))
            for item in described.members  # type: ignore[union-attr]
        ]
