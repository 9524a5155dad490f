"""A pattern that is compiled later matches as one that is compiled at once."""

from __future__ import annotations

import re

import pytest

from purebpf.late_pattern import compile_later


def test_it_is_compiled_at_its_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    compile_now = re.compile

    def count(source: str, flags: int = 0) -> re.Pattern[str]:
        compiled.append(source)
        return compile_now(source, flags)

    monkeypatch.setattr(re, "compile", count)
    late = compile_later(r"later(\d+)")
    assert compiled == []
    assert late.fullmatch("later5") is not None
    assert late.fullmatch("later") is None
    assert compiled == [r"later(\d+)"]


@pytest.mark.parametrize("flags", [0, re.IGNORECASE, re.MULTILINE | re.DOTALL])
def test_it_answers_as_a_pattern(flags: int) -> None:
    source = "^(a+)b$"
    text = "aab\nAAB\nb"
    late, now = compile_later(source, flags), re.compile(source, flags)
    assert late.findall(text) == now.findall(text)
    assert late.sub("<\\1>", text) == now.sub("<\\1>", text)
    assert [match.span() for match in late.finditer(text)] == [
        match.span() for match in now.finditer(text)
    ]
    assert (late.pattern, late.flags, late.groups) == (now.pattern, now.flags, now.groups)


def test_bytes_match_bytes() -> None:
    assert compile_later(rb"\xff(.)", re.DOTALL).findall(b"\xff\n\xffx") == [b"\n", b"x"]


def test_a_faulty_expression_raises_when_it_is_used() -> None:
    late = compile_later("(")
    with pytest.raises(re.error):
        late.match("")
