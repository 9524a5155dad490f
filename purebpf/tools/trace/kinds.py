"""The kinds of a call's arguments, and the memory to copy for them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

from purebpf.abi.tables import read_table
from purebpf.tools.trace import capture
from purebpf.tools.trace.calls import CALLS
from purebpf.tools.trace.capture import Capture, Copy
from purebpf.tools.trace.structs import SIZES
from purebpf.tuples import NamedTuple

__all__ = [
    "HIDDEN",
    "INTERFACES_PART",
    "IOCTL_PART",
    "LICENSE_AT",
    "PATHNAME_PART",
    "PATH_ROOM",
    "PERF_ATTR_PART",
    "SIGMASK_PART",
    "THREAD_AREA_PART",
    "Kind",
    "Signature",
    "capture_of",
    "copies_of",
    "described",
    "native_names",
    "signature",
]

HIDDEN = "-"
PATH_ROOM = 2048
"""Bytes of a path: that of the kernel's limit, 4096, would double what is kept for each task."""

IOCTL_PART = 1
"""The piece of more than the first 8 bytes, which may be all that there are."""
_IOCTL_ROOM = 44  # struct termios2
INTERFACES_PART = 2
"""Of SIOCGIFCONF, its array of struct ifreq."""
SIOCGIFCONF, INTERFACES_ROOM = 0x8912, 8 * 40
PATHNAME_PART, LICENSE_AT = 1, 2
"""Of union bpf_attr: the strings that the words at 0 and at 16 point to, where they do."""
_ATTRIBUTE_ROOM = 168
PERF_ATTR_PART = 1
"""Of struct perf_event_attr, what is behind the 64 bytes of the first version, too."""
_PERF_ATTR_ROOMS = (64, 136)
THREAD_AREA_PART = 1
"""Of clone3(2) of i386: the struct user_desc that `tls` points to."""
SIGMASK_PART = 1
"""Of pselect6(2): what the first of two words points to."""

_TOKEN = re.compile(r"([A-Za-z_]+1?)(?::(\w+))?([<>]*)(\*?[\dr]*)")
_ENTRIES = 8  # buffers of an array
ELEMENTS = 32  # of an array of structs
_STRINGS = 33  # of argv
_ENVIRONMENT_BLOCKS = 8  # of 32 addresses
_ADDRESS_ROOM = 128  # struct sockaddr_storage
_OPTION_ROOM = 64


class Kind(NamedTuple):
    """The kind of an argument: a line's word in purebpf/tools/trace/calls.py."""

    name: str
    table: str = ""
    where: str = ""
    length: str = ""

    @property
    def extent(self) -> int:
        """The number of the argument that has the length; RESULT."""
        digits = self.length.lstrip("*r")
        if digits:
            return int(digits) + (capture.AT if self.length.startswith("*") else 0)
        return capture.RESULT


class Signature(NamedTuple):
    """A call: the names of its arguments in the kernel's declaration, and their kinds."""

    name: str
    names: tuple[str, ...]
    kinds: tuple[Kind, ...]


@cache
def _declarations() -> Mapping[str, str]:
    return dict(line.partition(" ")[::2] for line in read_table("signatures").splitlines())


@cache
def _descriptions() -> Mapping[str, str]:
    return dict(line.partition(" ")[::2] for line in CALLS.splitlines())


@cache
def signature(name: str) -> Signature | None:
    """Return the signature of a call; None if the kernel does not declare it and it is not
    described here.
    """
    if (line := _descriptions().get(name)) is not None:
        return described(name, line)
    parameters = _parameters(name)
    if name not in _declarations():
        return None
    return Signature(name, _names(parameters), tuple(map(_declared_kind, parameters)))


def described(name: str, line: str) -> Signature:
    """Return a call with the kinds of its arguments from a line of kinds."""
    kinds = tuple(map(_parse, line.split()))
    names = _names(_parameters(name))
    names += tuple(f"arg{index}" for index in range(len(names), len(kinds)))
    return Signature(name, names, kinds)


def _names(parameters: Iterable[str]) -> tuple[str, ...]:
    return tuple(parameter.rpartition(" ")[2].lstrip("*") for parameter in parameters)


@cache
def native_names() -> frozenset[str]:
    """The calls that have a signature."""
    return frozenset(_declarations()) | frozenset(_descriptions())


def _parameters(name: str) -> list[str]:
    return [parameter for parameter in _declarations().get(name, "").split(",") if parameter]


def _parse(word: str) -> Kind:
    if word == HIDDEN:
        return Kind(HIDDEN)
    match = _TOKEN.fullmatch(word)
    assert match is not None, word
    name, table, where, length = match.groups()
    return Kind(name, table or "", where, length)


def _declared_kind(parameter: str) -> Kind:
    """By the type alone."""
    if "*" in parameter:
        is_text = re.fullmatch(r"const char \*\w*(name|path)\w*", parameter)
        return Kind("path") if is_text else Kind("ptr")
    if parameter.startswith(("unsigned long", "size_t", "aio_context_t")):
        return Kind("hex")
    if parameter.startswith(("unsigned", "u32", "__u32", "uint")):
        return Kind("uint")
    return Kind("long" if parameter.startswith(("long", "loff_t")) else "int")


def capture_of(name: str, string_size: int) -> Capture:
    """Return the copies for a call, with so many bytes of strings and buffers."""
    call_signature = signature(name)
    if call_signature is None:
        return Capture()
    start: list[Copy] = []
    end: list[Copy] = []
    for index, kind in enumerate(call_signature.kinds):
        for copy, at_end in copies_of(name, index, kind, string_size):
            (end if at_end else start).append(copy)
    return Capture(tuple(start), tuple(end), again=name not in ("execve", "execveat"))


_SIGNAL_MASK = 296
"""Where x86-64 has the mask in struct rt_sigframe, behind the address that it began with.

Source: arch/x86/include/asm/sigframe.h, include/uapi/asm-generic/ucontext.h.
"""

SPECIAL: Mapping[tuple[str, int], tuple[tuple[Copy, bool], ...]] = {
    ("clone", 2): ((capture.Block(2, 4), True),),
    ("fcntl", 2): ((capture.Block(2, 32), False), (capture.Block(2, 32), True)),
    ("futex", 3): ((capture.Block(3, 16), False),),
    ("bpf", 1): (
        (capture.Bytes(1, 2, _ATTRIBUTE_ROOM), False),
        (capture.Pointed(1, 0, 256, PATHNAME_PART), False),
        (capture.Pointed(1, 16, 64, LICENSE_AT), False),
        (capture.Bytes(1, 2, 64), True),
    ),
    ("ioctl", 2): (
        (capture.Block(2, 8), False),
        (capture.Block(2, _IOCTL_ROOM, IOCTL_PART), False),
        (capture.Block(2, 8), True),
        (capture.Block(2, _IOCTL_ROOM, IOCTL_PART), True),
        (
            capture.Pointed(
                *(2, 8, INTERFACES_ROOM, INTERFACES_PART, False), length_at=0, only=SIOCGIFCONF
            ),
            True,
        ),
    ),
    ("perf_event_open", 0): (
        (capture.Block(0, _PERF_ATTR_ROOMS[0]), False),
        (capture.Block(0, _PERF_ATTR_ROOMS[1], PERF_ATTR_PART), False),
    ),
    ("pselect6", 5): (
        (capture.Block(5, 16), False),
        (capture.Pointed(5, 0, 8, SIGMASK_PART, text=False), False),
    ),
    ("rt_sigreturn", 0): ((capture.Framed(0, _SIGNAL_MASK, 8), False),),
    ("prctl", 1): ((capture.TraceText(1, 16), False), (capture.TraceText(1, 16), True)),
}
"""Copies for arguments that are something else from operation to operation: and at the end?"""

_BLOCKS = {"capdata": 24, "capheader": 8, "length": 4, "offset": 8, "fds": 8, "uint1": 4,
           "int1": 4, "long1": 8, "status": 4, "fdset": 128, "sched_param": 4, "siginfo": 48,
           "timespecs": 32, "timevals": 32, "policy1": 4, "userdesc": 16, "offset1": 8}  # fmt: skip
"""Kinds of a constant size, in bytes."""


def copies_of(name: str, index: int, kind: Kind, size: int) -> list[tuple[Copy, bool]]:
    """The copies of one argument, and whether each is for the end."""
    if special := SPECIAL.get((name, index)):
        return list(special)
    if kind.name == "path":
        return [(capture.TraceText(index, PATH_ROOM), False)]
    if kind.name == "argv":
        return [(capture.Strings(index, _STRINGS, size + 1), False)]
    if kind.name == "envp":
        return [(capture.Environment(index, _ENVIRONMENT_BLOCKS), False)]
    if kind.name == "message" and kind.where == "<>":
        return [(capture.Block(index, 56), False), (capture.Message(index, _ENTRIES, size), True)]
    if kind.name in {"sent", "received"}:
        most, received = capture.MESSAGES * capture.MESSAGE_SIZE, kind.name == "received"
        array = capture.Bytes(index, kind.extent, most, capture.MESSAGE_SIZE)
        messages = capture.Messages(
            index, capture.RESULT if received else kind.extent, _ENTRIES // 2, size
        )
        return [(array, not received), (messages, received)]
    if kind.name == "dirents":
        return [(capture.Bytes(index, capture.RESULT, 4096), True)]
    if kind.name == "nodes":
        return [(capture.Nodes(index, kind.extent, 8 * ELEMENTS), kind.where == ">")]
    copy = _sized(index, kind, size)
    if copy is None:
        return []
    return [(copy, at_end) for sign, at_end in (("<", False), (">", True)) if sign in kind.where]


def _sized(index: int, kind: Kind, size: int) -> Copy | None:
    extent = kind.extent
    if kind.name in {"S", "remaining"}:
        return capture.Block(index, SIZES[kind.table])
    if kind.name in _BLOCKS:
        return capture.Block(index, _BLOCKS[kind.name])
    rooms = {
        "buf": (size, 1), "random": (size, 1), "cwd": (PATH_ROOM, 1), "sigset": (8, 1),
        "sa": (_ADDRESS_ROOM, 1), "value": (_OPTION_ROOM, 1), "ids": (4 * ELEMENTS, 4),
        "ints": (4 * ELEMENTS, 4), "errors": (4 * ELEMENTS, 4), "pages": (8 * ELEMENTS, 8),
        "pollfd": (8 * ELEMENTS, 8), "events": (12 * ELEMENTS, 12), "how": (24, 1),
        "cloneargs": (88, 1), "cpuset": (128, 1),
    }  # fmt: skip
    if kind.name in rooms:
        room, unit = rooms[kind.name]
        return capture.Bytes(index, extent, room, unit)
    if kind.name == "iov":
        return capture.Vector(index, extent, _ENTRIES, size)
    if kind.name == "message":
        return capture.Message(index, _ENTRIES, size)
    return None
