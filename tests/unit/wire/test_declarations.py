"""What construct declares and what struct reads are the same, for every layout, on any bytes."""

from __future__ import annotations

import ast
import struct
from collections.abc import Iterator
from pathlib import Path

import construct
import pytest
from hypothesis import given
from hypothesis import strategies as st

from purebpf.abi.perf import PERF_EVENT_ATTR
from purebpf.wire import formats
from purebpf.wire.declarations import LAYOUTS, layouts, perf_event_attr, struct_format


def flat(value: object) -> Iterator[object]:
    """The values of a parsed layout, in the order of the bytes."""
    if isinstance(value, construct.Container):
        for name, each in value.items():
            if not name.startswith("_"):
                yield from flat(each)
    elif isinstance(value, list):
        for each in value:
            yield from flat(each)
    else:
        yield value


@pytest.mark.parametrize("order", ["=", "<", ">"])
@pytest.mark.parametrize("name", LAYOUTS)
@given(data=st.data())
def test_construct_and_struct_read_the_same(name: str, order: str, data: st.DataObject) -> None:
    layout = layouts(order)[name]
    compiled = struct.Struct(order + getattr(formats, name))
    assert compiled.size == layout.sizeof()
    raw = data.draw(st.binary(min_size=compiled.size, max_size=compiled.size))
    assert tuple(flat(layout.parse(raw))) == compiled.unpack(raw)


@pytest.mark.parametrize("name", LAYOUTS)
def test_each_value_has_a_name(name: str) -> None:
    code, fields = struct_format(LAYOUTS[name])
    assert len(fields) == len(struct.unpack(f"={code}", bytes(struct.calcsize(f"={code}"))))
    assert len({*fields}) == len(fields)


def test_layouts_without_a_fixed_size_are_refused() -> None:
    with pytest.raises(TypeError, match="text: GreedyBytes"):
        struct_format(construct.Struct("text" / construct.GreedyBytes))


@pytest.mark.parametrize("size", [64, 72, 112, 120, 128, 136])
@given(data=st.data())
def test_attributes_are_read_as_the_abi_lays_them_out(size: int, data: st.DataObject) -> None:
    raw = data.draw(st.binary(min_size=size, max_size=size))
    parsed = perf_event_attr(size).parse(raw)
    theirs = PERF_EVENT_ATTR.unpack(raw)
    assert {name: parsed[name] for name in theirs} == theirs
    assert {name for name in parsed if not name.startswith("_io")} == theirs.keys()


PUREBPF = Path(__file__).parents[3] / "purebpf"
LONG = {getattr(formats, name) for name in LAYOUTS if len(getattr(formats, name)) > 5}
"""Short ones, such as two words, are also the formats of other things."""


@pytest.mark.parametrize("room", ["elf", "symbols", "unwind", "wire"])
def test_no_declared_format_is_repeated(room: str) -> None:
    literals = {
        (path.name, node.value)
        for path in (PUREBPF / room).glob("*.py")
        if path.name != "formats.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert len(LONG) > 8
    assert not [(name, text) for name, text in literals if text.lstrip("=<>") in LONG]
