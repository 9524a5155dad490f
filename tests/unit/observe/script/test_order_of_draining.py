"""Events are shown before stacks are finished, if no event shows a stack."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from purebpf.observe.script.session import ScriptSession
from purebpf.script.compilation import compile_script
from purebpf.script.host import NoHost
from purebpf.script.settings import Settings


def order(text: str) -> list[str]:
    """What a turn does, in its order."""
    log: list[str] = []
    session = ScriptSession(compile_script(text, NoHost(), Settings()), log.append, log.append)
    session._printer = SimpleNamespace(take_all=lambda _: ())
    session._stacks = SimpleNamespace(drain=lambda: log.append("stacks"))
    session._ring = SimpleNamespace(drain=lambda: ())
    session.drain(lambda: log.append("shown"))
    return log


@pytest.mark.parametrize(
    "text",
    [
        '{ @[ustack] = count(); printf("%d\\n", pid); }',
        "{ @[ustack] = count(); exit(); }",
        '{ @[ustack] = count(); printf("%s\\n", comm); time(); clear(@); }',
    ],
)
def test_numbers_do_not_wait_for_stacks(text):
    assert order(f"software:cpu-clock:1000000 {text}") == ["shown", "stacks"]


@pytest.mark.parametrize(
    "text",
    [
        '{ printf("%s\\n", ustack); }',
        "{ print((pid, ustack)); }",
        '{ printf("%d %s\\n", pid, usym(nsecs)); @[ustack] = count(); }',
        "{ @[ustack] = count(); print(@); }",
        "{ @[ustack] = count(); @b[ustack] = 1; print(@b[ustack]); }",
    ],
)
def test_stacks_are_finished_before_they_are_shown(text):
    assert order(f"software:cpu-clock:1000000 {text}") == ["stacks", "shown"]
