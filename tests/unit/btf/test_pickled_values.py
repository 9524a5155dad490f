"""Records and enum members in other processes, and copied."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import pytest

from purebpf.btf.codec.codecs import codec
from purebpf.btf.codec.records import record_class
from tests.support.builders.btf_builder import BtfBuilder

COLOURS = {"RED": 1, "mro": 2, "ROUGE": 1, "DARK": -5}


def _event(colours=COLOURS):
    """struct event { u32 from; struct point { s16 x, y; } where; enum colour colour; }"""
    b = BtfBuilder()
    u32, s16 = b.int("unsigned int", 4), b.int("short", 2, signed=True)
    point = b.struct("point", [("x", s16), ("y", s16)])
    colour = b.enum("colour", colours, signed=True)
    fields = [("from", u32), ("where", point), ("colour", colour)]
    type_id = b.struct("event", fields)
    return codec(b.btf(), type_id)


RAW = b"\7\0\0\0\1\0\2\0"
RECORD = _event().decode(RAW + b"\1\0\0\0")

COPIES = [copy.copy, copy.deepcopy]
COPIES += [lambda value, p=p: pickle.loads(pickle.dumps(value, p)) for p in range(2, 6)]


@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_is_the_same_record(copied):
    made = copied({"events": [RECORD]})["events"][0]
    assert made == RECORD
    assert (
        repr(made)
        == repr(RECORD)
        == ("event(from_=7, where=point(x=1, y=2), colour=<colour.RED: 1>)")
    )
    assert type(made) is type(RECORD)
    assert (made.from_, made.where.y, made.colour.name) == (7, 2, "RED")
    assert _event().encode(made) == RAW + b"\1\0\0\0"


@pytest.mark.parametrize("copied", COPIES)
@pytest.mark.parametrize("raw", [b"\1\0\0\0", b"\2\0\0\0", b"\xfb\xff\xff\xff", b"\x09\0\0\0"])
def test_a_copy_is_the_same_member(copied, raw):
    member = _event().decode(RAW + raw).colour
    made = copied(member)
    assert made == member
    assert (repr(made), str(made), type(made)) == (repr(member), str(member), type(member))


def test_a_copy_has_the_class_of_its_record_after_any_number_of_others():
    for number in range(3000):
        record_class(f"other{number}", ["x"])
    for number in range(600):
        _event({f"OTHER{number}": 1}).decode(RAW + b"\1\0\0\0")
    assert type(copy.deepcopy(RECORD)) is type(RECORD)
    assert type(copy.deepcopy(RECORD.where)) is type(RECORD.where)
    assert type(pickle.loads(pickle.dumps(RECORD.colour))) is type(RECORD.colour)


def test_a_member_brings_its_whole_enum():
    made = pickle.loads(pickle.dumps(RECORD.colour))
    assert {name: int(each) for name, each in type(made).__members__.items()} == {
        "RED": 1,
        "mro_": 2,
        "ROUGE": 1,
        "DARK": -5,
    }


def test_other_enums_and_structs_of_the_same_name_are_others():
    other = _event({"BLUE": 1}).decode(RAW + b"\1\0\0\0")
    assert pickle.loads(pickle.dumps([RECORD.colour, other.colour])) == [1, 1]
    assert pickle.loads(pickle.dumps(other)).colour.name == "BLUE"
    assert record_class("point", ["x"]) is not record_class("point", ["x", "y"])


def test_names_are_pickled_once():
    pickled = pickle.dumps([_event().decode(RAW + b"\1\0\0\0") for _ in range(1000)])
    assert pickled.count(b"ROUGE") == pickled.count(b"from_") == 1


def test_a_process_that_has_no_such_btf_reads_records():
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, input=pickle.dumps(RECORD), capture_output=True, check=True)
    assert done.stdout.decode() == f"{RECORD}\n"
