"""Maps of any type, and types of keys and values to put into them."""

from __future__ import annotations

from purebpf.loader.maps import map_traits
from purebpf.spec import MapSpec
from tests.support.builders.btf_builder import BtfBuilder

BUILDER = BtfBuilder()
U32 = BUILDER.int("unsigned int", 4)
U64 = BUILDER.int("unsigned long long", 8)
CHAR = BUILDER.int("char", 1, signed=True)
TEXT = BUILDER.array(CHAR, 6, U32)
KEY = BUILDER.struct("key", [("pid", U32), ("comm", TEXT)])  # 10 bytes and 2 of padding
VALUE = BUILDER.struct("value", [("total", U64), ("last", U32)])
BTF = BUILDER.btf()


def spec(kind: int, key: int = 4, value: int = 4, entries: int = 8, **more) -> MapSpec:
    name = map_traits.type_name(kind).lower()
    return MapSpec(name, kind, key, value, entries, **more)


def typed(kind: int, entries: int = 100, flags: int = 0) -> MapSpec:
    return spec(kind, 12, 16, entries, flags=flags, key_type_id=KEY, value_type_id=VALUE)
