"""The types of a BTF by name, each with its codec."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from purebpf.btf.codec.codecs import Codec, codec
from purebpf.btf.types.kinds import Kind
from purebpf.btf.types.parse import Btf, ids_of
from purebpf.similar import unknown_name

__all__ = ["NamedTypes"]

_KEYWORDS = {
    "struct": (Kind.STRUCT,),
    "union": (Kind.UNION,),
    "enum": (Kind.ENUM, Kind.ENUM64),
    "": (Kind.STRUCT, Kind.UNION, Kind.TYPEDEF, Kind.ENUM, Kind.ENUM64, Kind.INT),
}


class NamedTypes(Mapping[str, Codec]):
    """Codecs by name: `types["hdr"].decode(data)`, `types["struct hdr"].size`."""

    def __init__(self, btf: Btf | None) -> None:
        """Take the types of a BTF; None: there are none (an object without BTF)."""
        self._btf = btf

    def __getitem__(self, name: str) -> Codec:
        """The codec of a type; a plain name is a struct's or union's before a typedef's.

        Raises:
            KeyError: there is no such type; lists those with a similar name.
            SchemaError: it has no values: a struct that is only declared.
        """
        keyword, _, plain = name.rpartition(" ")
        if self._btf is not None:
            for kind in _KEYWORDS.get(keyword, ()):
                for type_id in self._btf.find(plain, kind):
                    return codec(self._btf, type_id)
        known = self._names(_KEYWORDS[keyword]) if keyword in _KEYWORDS else self
        raise unknown_name((f"{keyword} {of}".lstrip() for of in known), name, "unknown type")

    def __iter__(self) -> Iterator[str]:
        """The names of structs, unions and typedefs."""
        return self._names((Kind.STRUCT, Kind.UNION, Kind.TYPEDEF))

    def _names(self, kinds: Iterable[Kind]) -> Iterator[str]:
        if self._btf is not None:
            for kind in kinds:
                for type_id in ids_of(self._btf, kind):
                    if name := self._btf.name(type_id):
                        yield name

    def __len__(self) -> int:
        return sum(1 for _ in self)
