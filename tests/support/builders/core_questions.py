"""CO-RE relocations of types that the test builds."""

from __future__ import annotations

from collections.abc import Callable

from purebpf.btf.core.matching import CoreResult, match
from purebpf.btf.types.parse import Btf
from purebpf.spec import CoreRelocation
from tests.support.builders.btf_builder import BtfBuilder

Maker = Callable[[BtfBuilder], object]


def build(make: Maker, byteorder: str = "little") -> Btf:
    builder = BtfBuilder(byteorder)  # type: ignore[arg-type]
    make(builder)
    return builder.btf()


def relocate(local: Maker, access: str, kind: int, target: Maker) -> CoreResult:
    """Relocate `access` of the last type that `local` makes."""
    btf = build(local)
    relocation = CoreRelocation(0, len(btf) - 1, access, kind)
    return match(btf, [relocation], [build(target)])[0]
