"""What the format files of tracepoints declare, and what their records say."""

from __future__ import annotations

import json
import struct

import pytest

from purebpf.tools.trace.events import Lost, Passed, Task
from purebpf.tools.trace.render import JsonPrinter, StracePrinter, TextPrinter, describe
from purebpf.tools.trace.selection import UnknownCallError, split
from purebpf.tools.trace.tracepoint_format import ValueNames, fields_of
from purebpf.tools.trace.tracepoint_programs import find

COMMON = """\
name: demo
ID: 372
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

"""
DEMO = (
    COMMON
    + """\
\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:__data_loc char[] path;\toffset:28;\tsize:4;\tsigned:0;
\tfield:void * address;\toffset:32;\tsize:8;\tsigned:0;
\tfield:unsigned long state;\toffset:40;\tsize:8;\tsigned:0;
\tfield:u8 saddr[4];\toffset:48;\tsize:4;\tsigned:0;
\tfield:__rel_data_loc u16[] ports;\toffset:52;\tsize:4;\tsigned:0;
\tfield:int vec;\toffset:56;\tsize:4;\tsigned:1;
\tfield:struct in6_addr where;\toffset:60;\tsize:3;\tsigned:0;

print fmt: "%s %s", (REC->state & ((0x00000002 + 1) << 1)) ? __print_flags(REC->state & 3, "|", \
{ ( unsigned long)(((( gfp_t)((1UL)) << (1)))), "a (b)" }, { 0x1, "S" }, { UNKNOWN, "?" }) : "R", \
__print_symbolic(REC->vec, { 0, "HI" }, { -1, "LOW" })
"""
)


def record(state: int = 1, vec: int = 0) -> bytes:
    """A record of DEMO: 64 bytes, then the path, then two ports."""
    path = 8 << 16 | 64
    ports = 4 << 16 | (72 - 56)
    head = struct.pack("=8x16siIQQ4BIi3sx", b"cat\0rest", -7, path, 1 << 63, state, 127, 0, 0, 1,
                       ports, vec, b"\1\2\3")  # fmt: skip
    return head + b"/a b\0xyz" + struct.pack("=HH", 80, 443)


def test_fields_are_decoded_by_their_types() -> None:
    fields = {field.name: field for field in fields_of(DEMO)}
    data = record()
    values = {name: field.value(data) for name, field in fields.items()}
    assert values == {
        "comm": "cat", "pid": -7, "path": "/a b", "address": 1 << 63, "state": 1,
        "saddr": (127, 0, 0, 1), "ports": (80, 443), "vec": 0, "where": "010203",
    }  # fmt: skip
    assert {name: field.show(values[name]) for name, field in fields.items()} == {
        "comm": '"cat"', "pid": "-7", "path": '"/a b"', "address": "0x8000000000000000",
        "state": "S", "saddr": "[127, 0, 0, 1]", "ports": "[80, 443]", "vec": "HI",
        "where": "010203",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("state", "text"), [(0, "R"), (3, "a (b)|S"), (0x100, "R|0x100"), (0x101, "S|0x100")]
)
def test_flags_have_names(state: int, text: str) -> None:
    (field,) = (field for field in fields_of(DEMO) if field.name == "state")
    assert field.show(field.value(record(state=state))) == text


@pytest.mark.parametrize(("vec", "text"), [(-1, "LOW"), (5, "5")])
def test_symbols_have_names(vec: int, text: str) -> None:
    (field,) = (field for field in fields_of(DEMO) if field.name == "vec")
    assert field.show(field.value(record(vec=vec))) == text


def test_text_is_quoted_as_strace_does() -> None:
    field = fields_of(DEMO)[0]
    value = field.value(bytes(8) + b'a"\xff\n'.ljust(16, b"\0"))
    assert value == 'a"\udcff\n'
    assert field.show(value) == r'"a\"\377\n"'


def test_flags_without_a_name_for_none_are_0() -> None:
    assert ValueNames(((1, "A"),), flags=True).show(0) == "0"


def test_short_and_hostile_records_and_formats_are_answered() -> None:
    for field in fields_of(DEMO):
        field.show(field.value(b""))
        field.show(field.value(record()[:66]))
        field.show(field.value(b"\xff" * 80))
    assert fields_of("") == ()
    deep = DEMO.replace("UNKNOWN", "(" * 5000 + "1" + ")" * 5000).replace("0x1,", "1 << 9999999,")
    assert [field.name for field in fields_of(deep)] == [field.name for field in fields_of(DEMO)]
    unclosed = DEMO[: DEMO.index('"S"')]
    assert len(fields_of(unclosed)) == len(fields_of(DEMO))


def test_a_tracepoint_is_a_line_and_an_object() -> None:
    task = Task(5488, 5489, 0, "cat", "")
    passed = Passed(1_795_359_601_531_000_000, task, "irq:x", {"vec": "HI"}, {"vec": 0})
    assert "".join(TextPrinter().show([passed])) == f"   5489 cat{' ' * 21}irq:x(vec=HI)\n"
    assert "".join(StracePrinter().show([passed])) == "5489  irq:x(vec=HI)\n"
    shown = json.loads("".join(JsonPrinter().show([passed])))
    assert (shown["event"], shown["name"], shown["values"]) == ("tracepoint", "irq:x", {"vec": 0})
    lost = Lost(2, {"irq:x": 2})
    assert describe(lost) == "... 2 events lost here: 2 irq:x"


def test_words_with_a_colon_are_tracepoints() -> None:
    assert split(("openat,sched:*", "!irq:x")) == (("openat",), ("sched:*", "!irq:x"))
    known = ("irq:a", "sched:b", "sched:c", "syscalls:sys_enter_read", "ftrace:function")
    assert find(["sched:*", "irq:a", "!sched:b"], known) == ["sched:c", "irq:a"]
    assert find(["*:*"], known) == ["irq:a", "sched:b", "sched:c"]
    with pytest.raises(UnknownCallError, match=r"'shed:b' \(similar: sched:"):
        find(["shed:b"], known)
    with pytest.raises(UnknownCallError, match="name system calls without a group"):
        find(["syscalls:sys_enter_read"], known)
