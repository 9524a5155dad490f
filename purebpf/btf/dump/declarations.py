"""Types as C that compiles: each after its dependencies, laid out as the BTF says.

    print(purebpf.kernel_btf().dump_c("struct task_struct"))

A struct that is embedded is defined before; one that is only pointed to is declared. Two types of
one name become `name` and `name___2`, which CO-RE takes for flavours of `name`.
"""

from __future__ import annotations

from collections.abc import Iterable

from purebpf.btf.dump.names import CNames, identifier, is_c_type
from purebpf.btf.dump.text import Text
from purebpf.btf.types import kinds
from purebpf.btf.types.kinds import Kind
from purebpf.btf.types.parse import Btf
from purebpf.errors import FormatError

__all__ = ["dump_c"]

_MAX_DEPTH = 256
"""Deepest chain of types that need each other; one Python frame each."""

_NAMED = {
    "struct": (Kind.STRUCT,),
    "union": (Kind.UNION,),
    "enum": (Kind.ENUM, Kind.ENUM64),
    "": (
        Kind.STRUCT,
        Kind.UNION,
        Kind.ENUM,
        Kind.ENUM64,
        Kind.TYPEDEF,
        Kind.FUNC,
        Kind.VAR,
    ),
}
_TOP_LEVEL = frozenset(_NAMED[""]) - {Kind.FUNC, Kind.VAR} | {Kind.FWD}
_TAGGED = (kinds.Struct, kinds.Union)
_SIZED_ALIASES = {
    1: "unsigned char",
    2: "unsigned short",
    4: "unsigned int",
    8: "unsigned long long",
    16: "unsigned __int128",
}
_FLOAT_ALIASES = {2: "_Float16", 4: "float", 8: "double", 16: "long double"}


def dump_c(
    btf: Btf,
    wanted: Iterable[int | str] = (),
    *,
    functions: Iterable[int] = (),
    of_functions: str = "",
) -> str:
    """Return the C of some types and of their dependencies; of every type, if `wanted` is empty.

    Args:
        btf: the types; of a split BTF, "every type" means its own, with their dependencies in the
            base.
        wanted: ids, or names as C has them: "struct file", "u64", "bpf_map_lookup_elem". A plain
            name means all types that have it. Functions and variables are only written when asked
            for.
        functions: ids of functions to declare after the types.
        of_functions: attributes of functions, as `__attribute__((weak))`.

    Raises:
        KeyError: there is no such type.
        FormatError: types that contain themselves, or are otherwise not C's.
    """
    ids = [type_id for name_or_id in wanted for type_id in _ids(btf, name_or_id)]
    dump = _Dump(btf, of_functions)
    if ids:
        dump.write_each(ids)
    else:
        dump.write_all(range(len(btf.base) if btf.base is not None else 1, len(btf)))
    for type_id in functions:
        dump.write(type_id)
    return dump.text()


def _ids(btf: Btf, wanted: int | str) -> tuple[int, ...]:
    if isinstance(wanted, int):
        return (wanted,)
    keyword, _, name = wanted.rpartition(" ")
    type_ids = btf.find(name, *_NAMED[keyword]) if keyword in _NAMED else ()
    if not type_ids:
        raise KeyError(f"{btf.source}: unknown type {wanted!r}")
    return type_ids


class _Dump:
    """One dump. `_complete` makes a type fit to be embedded, `_mention` fit to be pointed to."""

    def __init__(self, btf: Btf, of_functions: str) -> None:
        self._btf = btf
        self._names = CNames(btf)
        self._text = Text(btf, self._names)
        self._of_functions = f" {of_functions}" if of_functions else ""
        self._declared: set[int] = set()
        self._defined: set[int] = set()
        self._open: set[int] = set()
        self._seen: set[tuple[bool, int, int]] = set()
        self._depth = 0
        self._blocks: list[str] = []

    def text(self) -> str:
        """Return the text written so far."""
        return "".join(f"{block};\n\n" for block in self._blocks)

    def write(self, type_id: int) -> None:
        """One type, of any kind."""
        btf_type = self._btf.type(type_id)
        if isinstance(btf_type, (kinds.Func, kinds.Var)):
            self._mention(btf_type.type_id, 0)
            name = self._names.other(btf_type.name)
            attributes = self._of_functions if btf_type.kind is Kind.FUNC else ""
            declaration = self._text.declare(btf_type.type_id, name)
            self._blocks.append(f"extern {declaration}{attributes}")
            return
        self._complete(type_id, 0)

    def write_each(self, ids: Iterable[int]) -> None:
        """These types; an anonymous enum once, where another type contains it or at the end."""
        anonymous = []
        for type_id in ids:
            self.write(type_id)
            if self._btf.kind(type_id) in (Kind.ENUM, Kind.ENUM64) and not self._btf.name(type_id):
                anonymous.append(type_id)
        self._write_anonymous(anonymous)

    def write_all(self, ids: range) -> None:
        """Every type that has a name, and the anonymous enums that nothing else contains."""
        anonymous = []
        for type_id in ids:
            kind = self._btf.kind(type_id)
            if kind in _TOP_LEVEL:
                if self._btf.name(type_id):
                    self._complete(type_id, 0)
                elif kind in (Kind.ENUM, Kind.ENUM64):
                    anonymous.append(type_id)
        self._write_anonymous(anonymous)

    def _write_anonymous(self, enums: Iterable[int]) -> None:
        for type_id in enums:
            if type_id not in self._text.inlined:
                self._blocks.append(self._text.define(type_id))

    def _complete(self, type_id: int, inside: int) -> None:
        """Write the declarations that must precede an embedded member of this type.

        `inside` is the struct to be defined next: it needs no declaration.
        """
        if not self._enter(type_id, inside, whole=True):
            return
        btf_type = self._btf.type(type_id)
        match btf_type:
            case kinds.Struct() | kinds.Union() if btf_type.name:
                self._define(type_id, btf_type)
            case kinds.Struct() | kinds.Union():
                self._members(type_id, btf_type, inside)
            case kinds.Array():
                self._complete(btf_type.element, inside)
            case kinds.Typedef():
                self._mention(type_id, inside)
                self._complete(btf_type.type_id, inside)
            case kinds.Const() | kinds.Volatile() | kinds.Restrict() | kinds.TypeTag():
                self._complete(btf_type.type_id, inside)
            case _:
                self._mention(type_id, inside)
        self._leave(type_id, inside, whole=True)

    def _enter(self, type_id: int, inside: int, *, whole: bool) -> bool:
        """Return True if there is anything to do; count the depth."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise FormatError(self._btf.source, f"type {type_id}", "is nested too deeply")
        if (whole, type_id, inside) not in self._seen:
            return True
        self._depth -= 1
        return False

    def _leave(self, type_id: int, inside: int, *, whole: bool) -> None:
        self._seen.add((whole, type_id, inside))
        self._depth -= 1

    def _members(self, type_id: int, record: kinds.Struct | kinds.Union, inside: int) -> None:
        self._begin(type_id)
        for member in record.members:
            self._complete(member.type_id, inside)
        self._open.discard(type_id)

    def _begin(self, type_id: int) -> None:
        if type_id in self._open:
            raise FormatError(self._btf.source, f"type {type_id}", "contains itself")
        self._open.add(type_id)

    def _define(self, type_id: int, record: kinds.Struct | kinds.Union) -> None:
        if type_id not in self._defined:
            self._members(type_id, record, type_id)
            self._blocks.append(self._text.define(type_id))
            self._defined.add(type_id)

    def _mention(self, type_id: int, inside: int) -> None:
        """Write the declarations that must precede a pointer to this type."""
        if not self._enter(type_id, inside, whole=False):
            return
        btf_type = self._btf.type(type_id)
        match btf_type:
            case kinds.Struct() | kinds.Union() if not btf_type.name:
                self._members(type_id, btf_type, inside)
            case kinds.Struct() | kinds.Union() | kinds.Fwd():
                if type_id != inside and type_id not in self._defined:
                    self._declare(type_id, btf_type)
            case kinds.Array():
                self._complete(btf_type.element, inside)
            case kinds.FuncProto():
                self._mention(btf_type.return_type, inside)
                for parameter in btf_type.params:
                    self._mention(parameter.type_id, inside)
            case kinds.Typedef():
                self._typedef(type_id, btf_type)
            case kinds.Int() | kinds.Float():
                self._alias(type_id, btf_type)
            case kinds.Enum() | kinds.Enum64():
                if btf_type.name and type_id not in self._defined:
                    self._defined.add(type_id)
                    self._blocks.append(self._text.define(type_id))
            case kinds.Void():
                pass
            case kinds.Func() | kinds.Var() | kinds.Datasec() | kinds.DeclTag():
                raise FormatError(self._btf.source, f"type {type_id}", "is not a type of C")
            case _:
                self._mention(btf_type.type_id, inside)
        self._leave(type_id, inside, whole=False)

    def _declare(self, type_id: int, declared: kinds.Struct | kinds.Union | kinds.Fwd) -> None:
        if type_id not in self._declared:
            self._declared.add(type_id)
            is_union = declared.kind is Kind.UNION or (
                declared.kind is Kind.FWD and declared.is_union
            )
            self._blocks.append(f"{'union' if is_union else 'struct'} {self._names.tag(type_id)}")

    def _typedef(self, type_id: int, typedef: kinds.Typedef) -> None:
        if type_id in self._defined:
            return
        self._begin(type_id)
        self._mention(typedef.type_id, 0)
        self._open.discard(type_id)
        self._defined.add(type_id)
        name = self._names.typedef(type_id)
        self._blocks.append(f"typedef {self._text.declare(typedef.type_id, name)}")

    def _alias(self, type_id: int, number: kinds.Int | kinds.Float) -> None:
        """A number that C cannot name (Rust's `u8`, an Arm poly8_t) gets one."""
        if is_c_type(number) or type_id in self._defined:
            return
        aliases = _SIZED_ALIASES if isinstance(number, kinds.Int) else _FLOAT_ALIASES
        if number.size not in aliases:
            problem = f"C has no {identifier(number.name)} of {number.size} bytes"
            raise FormatError(self._btf.source, f"type {type_id}", problem)
        self._defined.add(type_id)
        word = aliases[number.size]
        if isinstance(number, kinds.Int) and number.signed:
            word = word.replace("unsigned", "signed")
        self._blocks.append(f"typedef {word} {self._names.typedef(type_id)}")
