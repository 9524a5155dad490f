"""Names of interpreted methods are given up when other methods get their memory."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from purebpf.observe.runtimes.hotspot import java_tables
from purebpf.observe.runtimes.hotspot.copied_java import CopiedJava
from purebpf.observe.runtimes.hotspot.java_names import JavaCodeNames, JavaRecord, is_outdated
from purebpf.observe.runtimes.hotspot.java_process import UNKNOWN
from purebpf.runtimes.hotspot.frames import VIRTUAL, JavaFrame
from purebpf.runtimes.hotspot.methods import JavaMethod
from purebpf.symbols.frame import Frame, Reason, Unknown
from purebpf.symbols.java_words import split_java

RECORD = JavaRecord(1, 0x1000, 0x2000, 0x1000, 0, 0, UNKNOWN, 7, is_interpreted=True)
SEEN = RECORD._replace(check=0x2000 ^ 0x5555, identity=0x5555, unloaded=3)
WORD: Any = SimpleNamespace(number=7, place=3, copied=None, is_interpreted=True)


def method(class_name: str) -> JavaMethod:
    return JavaMethod(class_name, "run", "()V", f"{class_name}.java", 0x2040, 9, ((0, 5),))


def reading(
    found: JavaMethod | None,
    constant: int = 0x2000,
    identities: tuple[int, int] = (0x5555, 0x5555),
    unloaded: tuple[int, int] = (3, 3),
) -> Any:
    """A JVM's memory; its identities and numbers of unloaded classes are those of then and now."""
    return SimpleNamespace(
        methods=SimpleNamespace(find=lambda _: found),
        constant=lambda _: constant,
        identity=lambda _: identities[0],
        identity_now=lambda _: identities[1],
        unloaded=unloaded[0],
        unloaded_now=lambda: unloaded[1],
    )


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

    now = reading(None)
    now.methods.find = find
    for _ in range(4):
        known.recheck(lambda _: now, 1)
    assert looked == [0x1000, 0x1100, 0x1000, 0x1100]


@pytest.mark.parametrize(
    ("now", "is_named"),
    [
        (reading(method("Unit1")), True),
        (reading(method("Unit2"), identities=(0x5555, 0x6666)), False),
        (reading(method("Unit2"), identities=(0x6666, 0x5555)), False),
        (reading(method("Unit2"), identities=(0, 0)), False),
        (reading(method("Unit2"), unloaded=(3, 4)), False),
        (reading(method("Unit1"), unloaded=(3, UNKNOWN)), False),
    ],
    ids=["same", "other since", "other before", "not there", "a class is gone", "no number"],
)
def test_a_name_is_of_the_method_that_bpf_saw(now: Any, is_named: bool) -> None:
    known = JavaCodeNames(lines=False)
    assert known.add(SEEN, now) is is_named
    assert name(known) == ("Unit1.run" if is_named else Reason.JAVA_UNNAMED)
    known.recheck(lambda _: reading(method("Unit2")))  # later it may be anything
    assert name(known) == ("Unit1.run" if is_named else Reason.JAVA_UNNAMED)


def test_memory_that_was_read_before_is_outdated() -> None:
    assert not is_outdated(SEEN, reading(method("Unit1")))
    assert is_outdated(SEEN, reading(method("Unit1"), identities=(0x6666, 0x5555)))
    assert is_outdated(SEEN, reading(method("Unit1"), unloaded=(2, 3)))
    assert not is_outdated(RECORD, reading(method("Unit1"), identities=(1, 1)))


@pytest.mark.parametrize("is_unchanged", [True, False])
def test_a_copied_stack_has_names_while_no_class_was_unloaded(is_unchanged: bool) -> None:
    known = JavaCodeNames(lines=False)
    walk: Any = SimpleNamespace(
        found={
            1: [JavaFrame("Unit1.run", "Unit1.java", 5, is_method=True)],
            2: [JavaFrame(VIRTUAL, "", 0, is_method=True)],
        }
    )
    copied = CopiedJava(walk, known.number, is_old=False, is_unchanged=lambda: is_unchanged)
    native, method_word, virtual = copied.with_words([0x4000, 0, 0])
    assert native == 0x4000
    (answer,) = known.frames(split_java(method_word))
    assert isinstance(answer, Frame if is_unchanged else Unknown)
    (answer,) = known.frames(split_java(virtual))
    assert isinstance(answer, Frame)
    assert answer.name == VIRTUAL


def test_no_page_is_older_than_the_records_that_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reading keeps its pages: one that began between two records may have old ones of the
    second.
    """
    happened = []

    def drain() -> Iterator[bytes]:
        for number in (1, 2):
            happened.append(f"record {number}")
            yield bytes(24)

    def read(_: int) -> Any:
        happened.append("reading")
        return reading(None)

    tables = object.__new__(java_tables.JavaTables)
    monkeypatch.setattr(java_tables, "read_record", lambda _: RECORD)
    monkeypatch.setattr(tables, "_ring", SimpleNamespace(drain=drain), raising=False)
    monkeypatch.setattr(tables, "_read", read)
    monkeypatch.setattr(tables, "names", SimpleNamespace(add=lambda *_: True), raising=False)
    for field, value in {"_later": {}, "_over": [], "_recheck_due_s": float("inf")}.items():
        monkeypatch.setattr(tables, field, value, raising=False)
    tables.drain()
    assert happened == ["record 1", "record 2", "reading"]
