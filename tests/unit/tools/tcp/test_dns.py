"""Answers of name servers: true ones, cut ones, and hostile ones."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from purebpf.tools.tcp.dns import Answer, Names, parse


def name(text: str) -> bytes:
    labels = (label.encode() for label in text.split("."))
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def record(kind: int, data: bytes, owner: bytes = b"\xc0\x0c") -> bytes:
    return owner + struct.pack(">HHIH", kind, 1, 300, len(data)) + data


def message(*answers: bytes, flags: int = 0x8180, asked: str = "www.example.com") -> bytes:
    header = struct.pack(">HHHHHH", 7, flags, 1, len(answers), 0, 0)
    return header + name(asked) + struct.pack(">HH", 1, 1) + b"".join(answers)


A = record(1, bytes([93, 184, 216, 34]))
AAAA = record(28, bytes(15) + b"\x02")


def test_an_answer_gives_the_name_and_its_addresses() -> None:
    assert parse(message(A, AAAA)) == Answer(("www.example.com",), ("93.184.216.34", "::2"))


def test_a_canonical_name_is_another_name_of_them() -> None:
    alias = record(5, name("edge.example.net"))
    assert parse(message(alias, A)) == Answer(
        ("www.example.com", "edge.example.net"), ("93.184.216.34",)
    )


def test_questions_errors_and_answers_without_addresses_are_left_out() -> None:
    assert parse(message(A, flags=0x0100)) is None
    assert parse(message(A, flags=0x8183)) is None
    assert parse(message(record(16, b"\x03txt"))) is None


def test_a_cut_answer_gives_what_is_whole() -> None:
    whole = message(A, A, AAAA)
    assert parse(whole[: len(whole) - len(AAAA)]) == parse(message(A, A))


def test_a_pointer_to_itself_ends() -> None:
    loop = struct.pack(">HHHHHH", 7, 0x8180, 1, 1, 0, 0) + b"\xc0\x0c" + bytes(4) + A
    assert parse(loop) is None


@given(st.binary(max_size=512))
def test_no_message_is_too_strange(data: bytes) -> None:
    parse(data)
    parse(message(data))


@given(st.integers(0, 60), st.binary(min_size=1, max_size=3))
def test_no_damage_is_too_strange(at: int, damage: bytes) -> None:
    whole = message(A, AAAA)
    parse(whole[:at] + damage + whole[at + len(damage) :])


def test_names_are_the_last_ones_and_bounded() -> None:
    names = Names(most=2)
    names.add(Answer(("a",), ("1.1.1.1",)), 1)
    names.add(Answer(("b",), ("1.1.1.1", "2.2.2.2")), 1)
    assert [names.get(x, 1) for x in ("1.1.1.1", "2.2.2.2", "3.3.3.3")] == ["b", "b", ""]
    names.add(Answer(("c",), ("3.3.3.3",)), 1)
    assert [names.get(x, 1) for x in ("1.1.1.1", "2.2.2.2", "3.3.3.3")] == ["", "b", "c"]
    assert names.get("3.3.3.3", 2) == "", "of another network namespace"
