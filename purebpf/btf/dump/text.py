"""C declarations: a name inside its type, and the bodies of structs, unions and enums."""

from __future__ import annotations

from collections.abc import Iterator

from purebpf.btf.dump.layout import Layouts, MemberPlace, padding
from purebpf.btf.dump.names import CNames, identifier, is_c_type
from purebpf.btf.types import kinds
from purebpf.btf.types.kinds import Kind
from purebpf.btf.types.parse import MAX_DEPTH, Btf
from purebpf.errors import FormatError
from purebpf.tuples import NamedTuple

__all__ = ["Text"]

_MAX_PARTS = 1 << 16
"""Most members and parameters of one declaration: what is used twice doubles with every level."""

_MAX_PADDING = 1 << 16
"""Most words in one hole; a struct may claim to be gigabytes long."""

_WORDS = {Kind.CONST: "const", Kind.VOLATILE: "volatile", Kind.RESTRICT: "restrict"}
_FUNCTIONS_AND_ARRAYS = (Kind.ARRAY, Kind.FUNC_PROTO)


class _Behind(NamedTuple):
    """A type without its qualifiers; `tags` are its type tags as attributes."""

    type_id: int
    qualifiers: tuple[str, ...]
    tags: tuple[str, ...]


class Text:
    """Writes declarations for one dump. Raises FormatError for types that contain themselves, or
    have no C form.

    Attributes:
        inlined: the anonymous enums that were written as part of something else.
    """

    def __init__(self, btf: Btf, names: CNames) -> None:
        self._btf = btf
        self._names = names
        self._layouts = Layouts(btf)
        self._parts = 0
        self.inlined: set[int] = set()

    def define(self, type_id: int) -> str:
        """The definition of a struct, union or enum, without the semicolon."""
        self._parts = 0
        return self._body(type_id, 0, tagged=True)

    def declare(self, type_id: int, name: str) -> str:
        """`name` as a thing of that type: `int (*name[4])(void)`."""
        self._parts = 0
        return self._declare(type_id, name, 0)

    def _count(self, where: str) -> None:
        self._parts += 1
        if self._parts > _MAX_PARTS:
            problem = f"has over {_MAX_PARTS} members and parameters"
            raise FormatError(self._btf.source, where, problem)

    def _declare(self, type_id: int, declarator: str, depth: int) -> str:
        for _ in range(MAX_DEPTH):
            type_id, qualifiers, tags = self._behind(type_id)
            btf_type = self._btf.type(type_id)
            if isinstance(btf_type, kinds.Ptr):
                declarator = _pointer(declarator, (*qualifiers, *tags))
                if self._btf.kind(self._behind(btf_type.type_id).type_id) in _FUNCTIONS_AND_ARRAYS:
                    declarator = f"({declarator})"
                type_id = btf_type.type_id
            elif isinstance(
                btf_type, kinds.Array
            ):  # qualifiers are its elements', where C has them
                declarator += f"[{btf_type.count}]"
                type_id = btf_type.element
            elif isinstance(btf_type, kinds.FuncProto):
                declarator += f"({self._parameters(btf_type, depth)})"
                type_id = btf_type.return_type
            else:
                before = [word for word in qualifiers if word != "restrict"]
                words = [*before, self._specifier(type_id, btf_type, depth), *tags]
                return " ".join([*words, declarator] if declarator else words)
        raise FormatError(self._btf.source, f"type {type_id}", "is nested too deeply, or in itself")

    def _behind(self, type_id: int) -> _Behind:
        qualifiers: list[str] = []
        tags: list[str] = []
        for _ in range(MAX_DEPTH):
            btf_type = self._btf.type(type_id)
            if btf_type.kind in _WORDS:
                qualifiers.append(_WORDS[btf_type.kind])
            elif btf_type.kind is Kind.TYPE_TAG:
                text = btf_type.name.replace("\\", "\\\\").replace('"', '\\"')
                tags.append(f'__attribute__((btf_type_tag("{text}")))')
            else:
                return _Behind(type_id, tuple(qualifiers), tuple(tags))
            type_id = btf_type.type_id  # type: ignore[union-attr]  # each of these has one
        raise FormatError(self._btf.source, f"type {type_id}", "qualifiers without an end")

    def _parameters(self, prototype: kinds.FuncProto, depth: int) -> str:
        if depth > MAX_DEPTH:
            raise FormatError(self._btf.source, "a prototype", "contains itself")
        written = []
        for parameter in prototype.params:
            self._count("a prototype")
            written.append(
                self._declare(parameter.type_id, identifier(parameter.name), depth + 1)
                if parameter.type_id
                else "..."
            )
        return "void" if written in ([], ["..."]) else ", ".join(written)

    def _specifier(self, type_id: int, btf_type: kinds.Type, depth: int) -> str:
        names = self._names
        match btf_type:
            case kinds.Void():
                return "void"
            case kinds.Int() | kinds.Float():
                return btf_type.name if is_c_type(btf_type) else names.typedef(type_id)
            case kinds.Typedef():
                return names.typedef(type_id)
            case kinds.Fwd():
                return f"{'union' if btf_type.is_union else 'struct'} {names.tag(type_id)}"
            case kinds.Struct() | kinds.Union() | kinds.Enum() | kinds.Enum64():
                if btf_type.name:
                    return f"{_keyword(btf_type)} {names.tag(type_id)}"
                return self._body(type_id, depth, tagged=False)
            case _:
                raise FormatError(self._btf.source, f"type {type_id}", "is not a type of C")

    def _body(self, type_id: int, depth: int, *, tagged: bool) -> str:
        if depth > MAX_DEPTH:
            raise FormatError(self._btf.source, f"type {type_id}", "contains itself")
        btf_type = self._btf.type(type_id)
        tag = self._names.tag(type_id) if tagged else ""
        head = f"{_keyword(btf_type)} {tag}".rstrip()
        if isinstance(btf_type, (kinds.Enum, kinds.Enum64)):
            self.inlined.add(type_id)
            return self._enum(head, btf_type, "\t" * depth)
        assert isinstance(btf_type, (kinds.Struct, kinds.Union))
        is_packed = self._layouts.is_packed(type_id)
        lines = list(self._lines(btf_type, depth, packed=is_packed))
        packed = " __attribute__((packed))" if is_packed else ""
        indent = "\n" + "\t" * depth
        inside = "".join(f"{indent}\t{line};" for line in lines)
        return f"{head} {{{inside}{indent if lines else ''}}}{packed}"

    def _enum(self, head: str, enum: kinds.Enum | kinds.Enum64, indent: str) -> str:
        if not enum.values:
            return head
        suffix = ""
        if isinstance(enum, kinds.Enum64):
            suffix = "LL" if enum.signed else "ULL"
        inside = "".join(
            f"\n{indent}\t{self._names.other(enumerator.name)} = {enumerator.value}{suffix},"
            for enumerator in enum.values
        )
        mode = {1: "byte", 2: "HI"}.get(enum.size, "")
        if enum.size == 8 and all(
            -(1 << 31) <= enumerator.value < 1 << 32 for enumerator in enum.values
        ):
            mode = "word"
        attribute = f" __attribute__((mode({mode})))" if mode else ""
        return f"{head} {{{inside}\n{indent}}}{attribute}"

    def _lines(
        self, record: kinds.Struct | kinds.Union, depth: int, *, packed: bool
    ) -> Iterator[str]:
        """The members and the padding between them."""
        at = 0
        alignment = 1
        for member in record.members:
            self._count(f"{_keyword(record)} {record.name}")
            place = self._layouts.place(member)
            align = 1 if packed else self._layouts.alignment(member.type_id)
            if isinstance(record, kinds.Struct):
                yield from self._padding(at, place, align, packed=packed)
            width = f": {place.width}" if place.width else ""
            yield self._member(member, depth + 1) + width
            at = max(at, place.offset + place.size)
            alignment = max(alignment, align)
        end = MemberPlace(8 * record.size, 0, 0, 0)
        rest = list(self._padding(at, end, alignment, packed=packed))
        if rest and isinstance(record, kinds.Union):
            whole = "; ".join(self._padding(0, end, 1, packed=False))
            rest = [f"struct {{ {whole}; }}"]
        yield from rest

    def _padding(self, at: int, place: MemberPlace, align: int, *, packed: bool) -> Iterator[str]:
        size = self._btf.pointer_size
        if place.offset - at > 64 * _MAX_PADDING:
            problem = f"a hole of {(place.offset - at) // 8} bytes is not padding"
            raise FormatError(self._btf.source, f"bit {at}", problem)
        yield from padding(at, place, align, packed=packed, pointer_size=size)

    def _member(self, member: kinds.Member, depth: int) -> str:
        """Write a member; one of a named type without a member name (-fms-extensions) is opened."""
        resolved = self._btf.resolve(member.type_id)
        btf_type = self._btf.type(resolved)
        if not member.name and btf_type.name and isinstance(btf_type, (kinds.Struct, kinds.Union)):
            return self._body(resolved, depth, tagged=False)
        return self._declare(member.type_id, identifier(member.name), depth)


def _pointer(declarator: str, qualifiers: tuple[str, ...]) -> str:
    if qualifiers:
        return " ".join(["*", *qualifiers, declarator] if declarator else ["*", *qualifiers])
    return f"* {declarator}" if declarator.startswith("(") else f"*{declarator}"


def _keyword(btf_type: kinds.Type) -> str:
    return {Kind.STRUCT: "struct", Kind.UNION: "union"}.get(btf_type.kind, "enum")
