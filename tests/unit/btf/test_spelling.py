"""Types as C spells them."""

from __future__ import annotations

from purebpf.btf.types.spelling import spell
from tests.support.builders.btf_builder import BtfBuilder


def test_functions_show_what_they_take() -> None:
    b = BtfBuilder()
    integer = b.int("int", 4)
    pointer = b.ptr(b.struct("sock", []))
    plain = b.func_proto(0)
    called = b.func_proto(integer, [("sk", pointer), ("done", b.ptr(plain)), ("", 0)])
    named = b.ptr(called)
    btf = b.btf()
    assert spell(btf, plain) == "void (void)"
    assert spell(btf, called) == "int (struct sock *, function *, ...)"
    assert spell(btf, named) == "int (*)(struct sock *, function *, ...)"
