"""Which calls are traced, what is known of them, and the command line."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from purebpf.abi import syscalls
from purebpf.tools.trace import capture
from purebpf.tools.trace.arguments import _SHOW, show_arguments
from purebpf.tools.trace.calls import CALLS
from purebpf.tools.trace.capture import Capture
from purebpf.tools.trace.compat.calls import CALLS as I386_CALLS
from purebpf.tools.trace.compat.calls import SOCKET_CALLS
from purebpf.tools.trace.compat.captures import (
    compat_capture_of,
    compat_signature,
    unpack_socket_calls,
)
from purebpf.tools.trace.compat.layouts import widen
from purebpf.tools.trace.constants import numbers
from purebpf.tools.trace.kinds import capture_of, described, signature
from purebpf.tools.trace.options import parse
from purebpf.tools.trace.request import TraceOptions
from purebpf.tools.trace.selection import GROUPS, UnknownCallError, select
from purebpf.tools.trace.special import CALLS as SPECIAL
from purebpf.tools.trace.structs import SIZES
from purebpf.tools.trace.view import View

NAMES = set(syscalls.table("x86_64").values())
DESCRIBED = [line.split()[0] for line in CALLS.splitlines()]


@pytest.mark.parametrize("name", DESCRIBED)
def test_every_description_can_be_shown(name: str) -> None:
    known = signature(name)
    assert known is not None
    assert len(known.kinds) == len(known.names), "as many kinds as the kernel declares arguments"
    for kind in known.kinds:
        assert kind.name in _SHOW or (kind.name == "special" and name in SPECIAL)
        assert kind.name != "S" or kind.table in SIZES
        if kind.name in ("F", "E"):
            assert numbers(kind.table)
    copied = capture_of(name, 1024)
    assert all(copy.argument < len(known.kinds) for copy in (*copied.start, *copied.end))


def test_the_page_lists_what_is_compared_with_strace() -> None:
    root = Path(__file__).parents[4]
    source = (root / "tests/commands/trace/calls.c").read_text()
    compared = set(re.findall(r"\bC\((\w+)", source)) - {"name"}
    page = (root / "docs/trace.md").read_text()
    listed = re.search(r"<!-- compared -->\n(.*?)\n<!-- end -->", page, re.DOTALL)
    assert listed is not None
    assert re.findall(r"`(\w+)`", listed[1]) == sorted(compared)
    assert len(compared) > 200


def test_each_call_is_described_once_and_in_order() -> None:
    plain = [name for name in DESCRIBED if name not in SPECIAL and name != "clone3"]
    assert len(set(DESCRIBED)) == len(DESCRIBED)
    assert plain == sorted(plain)


def test_calls_without_a_description_are_shown_by_their_types() -> None:
    known = signature("io_submit")
    assert known is not None
    assert [kind.name for kind in known.kinds] == ["hex", "long", "ptr"]
    assert signature("syscall:999") is None


def test_what_is_copied_follows_from_the_kinds() -> None:
    path = capture.TraceText(1, 2048)
    assert capture_of("openat", 32) == Capture((path,), ())
    assert capture_of("read", 32) == Capture((), (capture.Bytes(1, capture.RESULT, 32),))
    assert capture_of("getppid", 32) == Capture()
    accepted = capture_of("accept", 32)
    assert accepted.start == (capture.Block(2, 4),)
    assert accepted.end == (capture.Bytes(1, capture.AT + 2, 128), capture.Block(2, 4))
    assert not capture_of("execve", 32).again


def test_32_bit_calls_are_copied_where_they_look_alike() -> None:
    """Of arm; the layout of i386 is known."""
    assert compat_capture_of("openat", 32, "arm") == capture_of("openat", 32)
    assert compat_capture_of("fstat", 32, "arm") == Capture()
    assert compat_capture_of("mmap", 32, "arm") == Capture()
    assert compat_signature("mmap", "arm") is None
    assert compat_signature("read", "arm") == signature("read")
    assert compat_capture_of("openat", 32, "i386") == capture_of("openat", 32)


def test_structs_of_i386_have_their_own_size() -> None:
    sizes = {"stat64": 96, "stat": 64, "statfs64": 84, "nanosleep": 8, "clock_gettime64": 16}
    for name, size in sizes.items():
        copied = compat_capture_of(name, 32, "i386")
        blocks = [copy for copy in (*copied.start, *copied.end) if isinstance(copy, capture.Block)]
        assert [block.size for block in blocks][:1] == [size], name


@pytest.mark.parametrize("line", I386_CALLS.splitlines())
def test_every_description_of_i386_can_be_shown(line: str) -> None:
    name, _, kinds = line.partition(" ")
    for kind in described(name, kinds).kinds:
        assert kind.name in _SHOW
        if kind.name in ("F", "E"):
            assert numbers(kind.table)
    assert name in set(syscalls.table("i386").values()) | set(SOCKET_CALLS)


def test_socketcall_becomes_the_calls_that_are_asked_for() -> None:
    (unpacked,) = unpack_socket_calls(frozenset({"connect", "sendto", "socketcall"})).start
    assert unpacked == capture.Unpacked(1, (3, 9, 11), 489)
    (unpacked,) = unpack_socket_calls(frozenset({"socketcall"})).start
    assert unpacked == capture.Unpacked(1, tuple(range(1, 21)), 489)
    numbers_of_i386 = set(syscalls.table("i386"))
    assert not numbers_of_i386 & set(range(490, 511)), "other numbers are needed"


def test_numbers_of_i386_are_widened() -> None:
    known = compat_signature("nanosleep", "i386")
    assert known is not None
    piece = capture.piece_id(0)
    wide = widen("nanosleep", known, (), {piece: struct.pack("<ii", -1, 7)})
    assert wide == {piece: struct.pack("<qq", -1, 7)}


def test_calls_that_only_i386_has_are_shown_as_native_ones() -> None:
    assert compat_signature("fstatat64", "i386") == signature("newfstatat")
    assert [copy.argument for copy in compat_capture_of("fstatat64", 32, "i386").start] == [1]
    assert compat_capture_of("clock_gettime64", 32, "i386") == capture_of("clock_gettime", 32)
    known = compat_signature("mmap2", "i386")
    view = View("mmap2", (0, 4096, 3, 0x22, 0xFFFFFFFF, 2), 0, {}, 32)
    shown = ["NULL", "4096", "PROT_READ|PROT_WRITE", "MAP_PRIVATE|MAP_ANONYMOUS", "-1", "0x2000"]
    assert show_arguments(view, known) == shown


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("read",), {"read"}),
        (("read,write",), {"read", "write"}),
        (("read", "write"), {"read", "write"}),
        (("open*", "!openat2"), {"open", "openat", "open_tree", "open_by_handle_at",
                                 "open_tree_attr"}),
        (("[fl]stat",), {"fstat", "lstat"}),
    ],
)  # fmt: skip
def test_names_and_patterns(words: tuple[str, ...], wanted: set[str]) -> None:
    assert select(words, NAMES) == wanted & NAMES


def test_all_but_some() -> None:
    assert select(("!read", "!%memory"), NAMES) == NAMES - {"read"} - select(("%memory",), NAMES)
    assert select((), NAMES) == NAMES


def test_groups_have_what_belongs_to_them() -> None:
    groups = {group: select((group,), NAMES) for group in GROUPS}
    assert {"openat", "stat", "execve", "rename"} <= groups["%file"]
    assert {"socket", "sendto", "recvmsg", "accept4", "listen"} <= groups["%net"]
    assert {"clone3", "execve", "wait4", "exit_group"} <= groups["%process"]
    assert {"read", "close", "epoll_wait", "fcntl"} <= groups["%desc"]
    assert {"mmap", "brk", "munmap"} <= groups["%memory"]
    assert {"kill", "rt_sigaction", "rt_sigprocmask"} <= groups["%signal"]
    assert "getpid" not in set().union(*groups.values())


@pytest.mark.parametrize(
    ("word", "problem"),
    [("raed", "unknown system call 'raed' .*read"), ("%what", "unknown group '%what'")],
)
def test_unknown_words_are_refused(word: str, problem: str) -> None:
    with pytest.raises(UnknownCallError, match=problem):
        select((word,), NAMES)


def test_options_are_read() -> None:
    options, view, shape = parse(
        ["-e", "%file", "-e", "!stat", "--failure", "--least", "2.5", "--duration", "7s",
         "--max-events", "9", "-s", "100", "-T", "--format", "strace", "-o", "out",
         "--", "ls", "-l"]
    )  # fmt: skip
    assert options == TraceOptions(
        events=("%file", "!stat"), failed=True, least_ms=2.5, most_events=9, string_size=100,
        command=("ls", "-l"), duration_s=7.0,
    )  # fmt: skip
    assert (view.format, view.output, shape.times) == ("strace", "out", True)


@pytest.mark.parametrize(
    "words", [["-e", "raed"], ["--least", "x"], ["-s", "5000"], ["--max-events", "0"]]
)
def test_wrong_options_exit_with_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        parse(words)
    assert stopped.value.code == 2
    assert "error: argument" in capsys.readouterr().err
