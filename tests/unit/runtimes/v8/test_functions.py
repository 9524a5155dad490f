"""The names, scripts and lines of functions."""

from __future__ import annotations

import pytest

from purebpf.runtimes.v8.functions import Function, Functions
from tests.unit.runtimes.v8.fake_v8 import BASE, EXTERNAL, VERSIONS, FakeV8, smi

SOURCE = "one\ntwo\r\nthree\rfour\u2028five\n"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_function_with_its_script(version: int) -> None:
    v8 = FakeV8(version)
    shared = v8.shared(v8.text("handle"), v8.script("/srv/shop.js", SOURCE, 41), 9)
    functions = Functions(v8.heap())
    assert functions.find(shared) == Function("handle", "/srv/shop.js", 41, 9, is_built_in=False)
    assert functions.shared_of(v8.function(shared)) == shared


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("count", [0, 3, 75, 76, 400])
def test_a_name_in_a_scope_stands_behind_its_variables(version: int, count: int) -> None:
    v8 = FakeV8(version)
    name, inferred, empty = v8.text("handle"), v8.text("Shop.handle"), v8.text("")
    script = v8.script("/srv/shop.js", SOURCE)
    functions = Functions(v8.heap())
    for words, expected in (
        ((name, smi(2), inferred), "handle"),
        ((empty, smi(2), inferred), "Shop.handle"),
        ((smi(0), smi(4), smi(5), smi(6), name), ""),
        ((smi(0), name), "handle"),
    ):
        found = functions.find(v8.shared(v8.scope(count, *words), script))
        assert found is not None
        assert found.name == expected


def test_lines_are_counted_as_v8_counts_them() -> None:
    v8 = FakeV8()
    shared = v8.shared(v8.text("f"), v8.script("a.js", SOURCE))
    functions = Functions(v8.heap())
    found = [
        functions.line(shared, SOURCE.index(word)) for word in ("one", "two", "thr", "fo", "fi")
    ]
    assert found == [1, 2, 3, 4, 5]
    assert functions.line(shared, -1) == 0


def test_lines_of_a_script_that_begins_further_down() -> None:
    v8 = FakeV8()
    shared = v8.shared(v8.text("f"), v8.script("a.js", SOURCE, 3, first_line=40))
    assert Functions(v8.heap()).line(shared, 5) == 42


def test_line_ends_that_v8_has_counted() -> None:
    v8 = FakeV8()
    script = v8.script("a.js", "another text")
    v8.field(script, v8.layout.script_line_ends, v8.array([smi(3), smi(7), smi(20)]))
    shared = v8.shared(v8.text("f"), script)
    functions = Functions(v8.heap())
    assert [functions.line(shared, at) for at in (0, 3, 4, 8)] == [1, 1, 2, 3]


def test_a_source_that_cannot_be_read_has_no_lines() -> None:
    v8 = FakeV8()
    script = v8.script("a.js", "x")
    v8.field(script, v8.layout.script_source, v8.compound(EXTERNAL, 1 << 21, 0, BASE - 4096))
    shared = v8.shared(v8.text("f"), script)
    functions = Functions(v8.heap())
    assert functions.find(shared) is not None
    assert functions.line(shared, 10) == 0


def test_functions_of_v8_have_no_script() -> None:
    v8 = FakeV8()
    shared = v8.shared(v8.text("forEach"), v8.object(131, 32))
    assert Functions(v8.heap()).find(shared) == Function("forEach", "", -1, -1, is_built_in=True)


def test_names_are_printable_and_not_long() -> None:
    v8 = FakeV8()
    script = v8.script("a\x1b[2Jb\n.js", "x")
    found = Functions(v8.heap()).find(v8.shared(v8.text("f\0" + 5000 * "x"), script))
    assert found is not None
    assert found.file == "a?[2Jb?.js"
    assert found.name == "f?" + 510 * "x"


def test_what_is_no_function_has_no_name() -> None:
    v8 = FakeV8()
    functions = Functions(v8.heap())
    text = v8.text("x")
    assert functions.find(text) is None
    assert functions.shared_of(text) == 0
    assert functions.shared_of(v8.function(text)) == 0
    assert functions.shared_of(smi(5)) == 0
    scope = v8.scope(0, text)
    v8.field(scope, 8 * (1 + v8.layout.scope_locals), smi(1 << 30))
    assert functions.find(v8.shared(scope, v8.script("a.js", "x"))) is None
