"""Names of interpreted methods are given up when other methods get their memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from purebpf.observe.runtimes.hotspot.java_names import JavaCodeNames, JavaRecord
from purebpf.runtimes.hotspot.methods import JavaMethod
from purebpf.symbols.frame import Frame, Reason, Unknown

RECORD = JavaRecord(1, 0x1000, 0x2000, 0, 0, 7, is_interpreted=True)
WORD: Any = SimpleNamespace(number=7, place=3, copied=None, is_interpreted=True)


def method(class_name: str) -> JavaMethod:
    return JavaMethod(class_name, "run", "()V", f"{class_name}.java", 0x2040, 9, ((0, 5),))


def reading(found: JavaMethod | None, constant: int = 0x2000) -> Any:
    methods = SimpleNamespace(find=lambda _: found)
    return SimpleNamespace(methods=methods, constant=lambda _: constant)


def names() -> JavaCodeNames:
    made = JavaCodeNames(lines=False)
    made.add(RECORD, reading(method("Unit1")))
    return made


def name(of: JavaCodeNames) -> str | Reason:
    (answer,) = of.frames(WORD)
    assert isinstance(answer, Frame | Unknown)
    return answer.name if isinstance(answer, Frame) else answer.reason


@pytest.mark.parametrize(
    "now",
    [reading(method("Unit2")), reading(None), reading(method("Unit1"), constant=0x3000)],
    ids=["another class", "freed", "another method"],
)
def test_a_name_is_given_up_when_its_memory_has_changed(now: Any) -> None:
    known = names()
    assert name(known) == "Unit1.run"
    known.recheck(lambda _: now)
    assert name(known) == Reason.JAVA_UNNAMED
    assert known.unread == 1


def test_a_name_stays_while_its_method_does_and_after_the_process() -> None:
    known = names()
    known.recheck(lambda _: reading(method("Unit1")))
    known.recheck(lambda _: None)  # the process has ended
    known.recheck(lambda _: reading(method("Unit2")))
    assert name(known) == "Unit1.run"
    assert known.unread == 0


def test_looks_take_turns() -> None:
    known = names()
    known.add(RECORD._replace(address=0x1100, number=8), reading(method("Unit3")))
    looked: list[int] = []

    def find(at: int) -> JavaMethod:
        looked.append(at)
        return method("Unit1" if at == 0x1000 else "Unit3")

    now: Any = SimpleNamespace(methods=SimpleNamespace(find=find), constant=lambda _: 0x2000)
    for _ in range(4):
        known.recheck(lambda _: now, 1)
    assert looked == [0x1000, 0x1100, 0x1000, 0x1100]
