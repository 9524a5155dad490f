"""What other processes show to root's run, for `mutate.py`: arguments of system calls, names in
/proc, answers of name servers, notes and tables of ELF files.
"""

from __future__ import annotations

import os
import random
import struct
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from purebpf.abi.syscalls import table
from purebpf.errors import PurebpfError
from purebpf.measure import targets
from purebpf.measure.options import TargetOptions
from purebpf.observe.runtimes.golang import goroutines_now
from purebpf.symbols.cgroup_names import cgroup_name
from purebpf.symbols.elf_image import ElfImage
from purebpf.symbols.elf_names import function_ranges, functions_named
from purebpf.symbols.go_list import list_in_code
from purebpf.symbols.go_table import go_functions
from purebpf.symbols.proc_maps import parse_maps
from purebpf.symbols.source_lines import parse_lines
from purebpf.symbols.usdt import usdt_probes
from purebpf.symbols.usdt_arguments import parse_arguments
from purebpf.syscall import proc
from purebpf.tools.tcp import dns
from purebpf.tools.trace.arguments import show_arguments
from purebpf.tools.trace.capture import (
    MESSAGE_PARTS,
    MESSAGES,
    ROOM,
    Block,
    Bytes,
    Copy,
    Environment,
    Framed,
    Message,
    Messages,
    Nodes,
    Pointed,
    Strings,
    TraceText,
    Unpacked,
    Vector,
    piece_id,
)
from purebpf.tools.trace.compat.calls import SOCKET_CALLS
from purebpf.tools.trace.compat.captures import compat_capture_of, compat_signature
from purebpf.tools.trace.compat.layouts import widen
from purebpf.tools.trace.constants import numbers
from purebpf.tools.trace.kinds import capture_of, signature
from purebpf.tools.trace.results import show_result
from purebpf.tools.trace.view import View, pieces

_PIECE = struct.Struct("<II")
_HEAD = struct.Struct("<Hq6Q")
_STRING_SIZE = 32
_NUMBERS = (0, 1, 2, 3, 7, 8, 16, 64, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 63, (1 << 64) - 1)


@cache
def _calls() -> list[str]:
    return sorted(set(table("x86_64").values()))


@cache
def _i386_calls() -> list[str]:
    return sorted({*table("i386").values(), *SOCKET_CALLS})


_I386 = 1 << 15
"""Of the number of a call: it is a 32-bit one."""


@cache
def _deep() -> list[int]:
    """Calls of which one argument says what another points to, or with structs in arrays."""
    names = ("bpf", "fcntl", "futex", "ioctl", "prctl", "perf_event_open", "pselect6")
    return [_calls().index(name) for name in (*names, "recvmmsg", "sendmmsg", "sendmsg")]


def call_seeds() -> Iterator[bytes]:
    """A call; `changed_call` makes others up."""
    yield changed_call(b"", random.Random(0))


def changed_call(_: bytes, chance: random.Random) -> bytes:
    """A record: any call, any words, and pieces of the sizes that the programs of a call send."""
    number = chance.choice(_deep() if chance.random() < 0.3 else range(len(_calls())))
    words = [_word(chance) for _ in range(6)]
    if chance.random() < 0.9:  # of which the other arguments depend on it
        if _calls()[number] == "ioctl":
            words[1] = chance.choice(numbers("ioctl"))[0]
        elif _calls()[number] == "bpf":
            words[0] = chance.choice(numbers("bpf_cmd"))[0]
    copied = capture_of(_calls()[number], _STRING_SIZE)
    if chance.random() < 0.4:
        number = chance.randrange(len(_i386_calls()))
        words = [word & 0xFFFFFFFF for word in words]
        copied = compat_capture_of(_i386_calls()[number], _STRING_SIZE, "i386")
        number |= _I386
    result = chance.choice((0, 1, 3, 32, 4096, -1, -2, -4095, -512, (1 << 63) - 1, -(1 << 63)))
    made = b""
    for copies, end in ((copied.start, False), (copied.again and copied.end, True)):
        for copy in copies or ():
            if chance.random() < 0.9:
                made += _piece(copy, chance, end=end)
    return _HEAD.pack(number, result, *words) + made[:ROOM]


def _word(chance: random.Random) -> int:
    return chance.choice((*_NUMBERS, chance.getrandbits(32), chance.getrandbits(64)))


def _piece(copy: Copy, chance: random.Random, *, end: bool) -> bytes:
    first, parts = 0, 1
    if isinstance(copy, Unpacked):
        return b""
    if isinstance(copy, Block | Framed):
        first, sizes = copy.part, [copy.size]
    elif isinstance(copy, Pointed):
        is_whole = not copy.text and copy.length_at is None
        first, sizes = copy.part, [copy.room if is_whole else chance.randint(1, copy.room)]
    elif isinstance(copy, Nodes):
        sizes = [8 * chance.randint(0, copy.room // 8)]
    elif isinstance(copy, TraceText):
        sizes = [chance.choice((1, 2, 17, copy.room))]
    elif isinstance(copy, Bytes):
        most = copy.room // copy.unit
        sizes = [chance.choice((0, 1, 2, most, chance.randint(0, most))) * copy.unit]
    elif isinstance(copy, Strings):
        sizes = [chance.randint(1, copy.room) for _ in range(chance.choice((0, 1, copy.most)))]
    elif isinstance(copy, Environment):
        sizes = [256] * chance.choice((0, 1, copy.blocks))
    else:  # the first is an array, or a struct msghdr and what it points to
        parts = chance.randint(1, MESSAGES) if isinstance(copy, Messages) else 1
        filled, word = chance.randint(0, copy.entries), copy.word
        entries = 2 * word * filled
        start = {Vector: [entries], Message: [7 * word, 128, 256, entries]}
        sizes = start.get(type(copy), [8 * word, 128, 256, entries])
        sizes = sizes + [chance.randint(0, copy.room) for _ in range(filled)]
    made = b""
    for number in range(parts):
        for part, size in enumerate(sizes, first + number * MESSAGE_PARTS):
            data = _contents(size, chance)
            identity = piece_id(copy.argument, part, end=end)
            made += _PIECE.pack(identity, size) + data + bytes(-size % 8)
    return made


def _contents(size: int, chance: random.Random) -> bytes:
    kind = chance.randrange(4)
    if kind == 0:
        return bytes(size)
    if kind == 1:
        return chance.randbytes(size)
    if kind == 2:
        return (b'\x1b[2J\n\r<>"\\\xff\xe2\x80\xae' * (size // 8 + 1))[:size]
    words = [_word(chance) for _ in range(size // 8 + 1)]
    return struct.pack(f"<{len(words)}Q", *words)[:size]


def run_call(data: bytes) -> None:
    """A call as text: all of it can be shown on a terminal."""
    number, result, *words = _HEAD.unpack_from(data)
    copied = dict(pieces(data[_HEAD.size :]))
    if number & _I386:
        name, word = _i386_calls()[number & ~_I386], 4
        signed = compat_signature(name, "i386")
        copied = widen(name, signed, tuple(words), copied) if signed else copied
    else:
        name, word = _calls()[number], 8
        signed = signature(name)
    for known in (signed, None):
        for returned in (result, None):
            view = View(
                known.name if known else name,
                tuple(words),
                returned,
                copied,
                _STRING_SIZE,
                lambda _: "/a\n<b>\udcff",
                word,
            )
            shown = ", ".join(show_arguments(view, known)) + show_result(view)
            assert shown.isprintable(), shown
            assert shown.isascii(), shown


_ENDS = ("\r", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029", "\0x", " ", "\t")


def name_seeds() -> Iterator[bytes]:
    """Names that look like the rest of a line, between ends of lines that the kernel leaves."""
    for end in _ENDS:
        parts = ("a", "Uid:\t0", "1000-2000 r-xp 0 0:0 9 ", "0::", "b c d (x) R 1 2", "frozen:\t1")
        yield end.join(parts).encode()


def run_proc(data: bytes) -> None:
    """Files of /proc of a process with these names: no line is more than the kernel wrote."""
    raw = data.replace(b"\0", b"").replace(b"\n", b"\\012").replace(b"\\", b"\\134")
    path = b"/" + raw.replace(b"/", b"|")
    escaped = path.replace(b" ", b"\\040").replace(b"\t", b"\\011")
    comm = raw[:15]
    with tempfile.TemporaryDirectory(dir="/dev/shm") as root:
        for place, text in {
            "7/status": b"Name:\t%s\nUid:\t7\t7\t7\t7\nTgid:\t7\n" % comm,
            "7/maps": b"10000-20000 r-xp 00000000 08:01 12 %s\n20000-30000 r-xp 0 0:0 0 \n" % path,
            "7/cgroup": b"1:name=systemd:%s\n0::%s\n" % (path, path),
            "7/comm": comm + b"\n",
            "7/cmdline": data,
            "7/stat": b"7 (%s) S %s\n" % (comm, b" ".join(b"%d" % n for n in range(49))),
            "self/mounts": b"none %s fuse rw 0 0\nnone / ext4 rw 0 0\n" % escaped,
        }.items():
            file = Path(root, place)
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(text)
        before, proc.PROC = proc.PROC, root
        try:
            _check_proc(comm, path)
        finally:
            proc.PROC = before


def _check_proc(comm: bytes, path: bytes) -> None:
    assert list(proc.status(7) or ()) == ["Name", "Uid", "Tgid"]
    assert [mapping.start for mapping in parse_maps(proc.maps(7) or "")] == [0x10000, 0x20000]
    assert [kind for _, kind in proc.mounts()] == ["fuse", "ext4"]
    assert os.fsencode(proc.comm(7) or "") == comm
    assert proc.start_ticks(7) == 18
    proc.command_line(7)
    text = proc.cgroup(7) or ""
    assert cgroup_name(text).kind
    assert text.split("\n")[1] == f"0::{os.fsdecode(path)}"
    targets.is_in_scope(7, TargetOptions(cgroup="/", uid=0))


def dns_seeds() -> Iterator[bytes]:
    """An answer with a name, an alias and addresses of both kinds."""
    name, back = b"\3www\7example\0", b"\xc0\x0c"
    head = struct.pack(">HHHHHH", 7, 0x8180, 1, 3, 0, 0) + name + struct.pack(">HH", 1, 1)
    records = [(5, b"\1a\xc0\x10"), (1, bytes(4)), (28, bytes(16))]
    body = b"".join(
        back + struct.pack(">HHIH", kind, 1, 60, len(data)) + data for kind, data in records
    )
    yield head + body


def run_dns(data: bytes) -> None:
    """An answer of a name server, and what is kept of it."""
    answer = dns.parse(data)
    if answer is not None:
        names = dns.Names(most=4)
        names.add(answer, 1)
        assert all(len(name) <= 4 * 256 for name in answer.names)
        assert names.get(answer.addresses[-1], 1) in (answer.names[0], "")
        assert names.get(answer.addresses[-1], 2) == ""


def run_probes(data: bytes) -> None:
    """Where a file says that its functions and static probes are."""
    image = ElfImage(lambda at, size: data[at : at + size], len(data), "x")
    for look in (
        lambda: functions_named(image, lambda _: True),
        lambda: function_ranges(image, "main"),
        lambda: [parse_arguments(probe.arguments, image.machine) for probe in usdt_probes(image)],
        lambda: list(go_functions(image)),
        lambda: list_in_code(image),
        lambda: goroutines_now._symbol(image, b"\0main\0"),  # noqa: SLF001
    ):
        with suppress(PurebpfError, ValueError):
            look()


def line_seeds() -> Iterator[bytes]:
    """What llvm-symbolizer says of three addresses, one inlined, one unknown."""
    yield (
        b"0x10\ninner\n/src/a.c:4 (discriminator 3)\nouter\n/src/a.c:8\n"
        b"0x20\n??\n??:0\n0x30\nlast\n/src/b: c.c:12\n"
    )


def run_lines(data: bytes) -> None:
    """Source lines that a tool read in the DWARF of a process's file."""
    addresses = [0x10, 0x20, 0x30]
    answers = parse_lines(data.decode("utf-8", "replace"), addresses)
    assert answers.keys() <= set(addresses)
    for lines in answers.values():
        assert all(0 <= line.line < 10**10 for line in lines)
