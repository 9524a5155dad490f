"""The memory to copy behind pointer arguments. Pure.

The kernel copies some of it when a call begins and some when it ends. The copies follow the call's
record as pieces, each with an id that names the argument.
"""

from __future__ import annotations

from purebpf.tuples import NamedTuple

__all__ = [
    "AT",
    "END",
    "MESSAGES",
    "MESSAGE_PARTS",
    "MESSAGE_SIZE",
    "RESULT",
    "ROOM",
    "Block",
    "Bytes",
    "Capture",
    "Copy",
    "Environment",
    "Framed",
    "Message",
    "Messages",
    "Nodes",
    "Pointed",
    "Strings",
    "TraceText",
    "Unpacked",
    "Vector",
    "piece_id",
]

ROOM = 6144
"""For all pieces of a call, in bytes: CAPTURE_ROOM of bpf_src/trace/records.h."""

END = 128
"""The bit of an id that says: when the call ended."""

RESULT = -1
"""As a length: what the call returns."""

AT = 8
"""Added to the number of an argument, as a length: the 32 bits that it points to."""

_WORD = 8
"""Bytes of an address, a long or a size_t; 4 in 32-bit programs."""

MESSAGES = 4
MESSAGE_PARTS = 16
"""Parts that are kept for each."""
MESSAGE_SIZE = 64  # struct mmsghdr


class TraceText(NamedTuple):
    """A string, of at most `room` bytes with its NUL."""

    argument: int
    room: int


class Block(NamedTuple):
    """`size` bytes."""

    argument: int
    size: int
    part: int = 0


class Pointed(NamedTuple):
    """A string or bytes whose address is in the pointed-to struct, `at` bytes from its start.

    If it is: of some calls that is a number sometimes.

    Attributes:
        length_at: where the 32 bits are that say how many bytes there are; None: `room`.
        only: a number that argument 1 must be; None: any.
    """

    argument: int
    at: int
    room: int
    part: int
    text: bool = True
    length_at: int | None = None
    only: int | None = None
    word: int = _WORD


class Framed(NamedTuple):
    """`size` bytes of the stack, `at` bytes above its pointer: the frame of a signal."""

    argument: int
    at: int
    size: int
    part: int = 0


class Nodes(NamedTuple):
    """A set of NUMA nodes; argument `length` is the number of bits, plus one."""

    argument: int
    length: int
    room: int


class Bytes(NamedTuple):
    """As many times `unit` bytes as `length` says, `room` bytes at most.

    `length` is the number of an argument, with AT or without, or RESULT.
    """

    argument: int
    length: int
    room: int
    unit: int = 1


class Strings(NamedTuple):
    """Strings at the addresses that the argument points to, up to one that is 0."""

    argument: int
    most: int
    room: int
    word: int = _WORD


class Environment(NamedTuple):
    """The addresses of strings, `blocks` of 256 bytes: to count them."""

    argument: int
    blocks: int


class Vector(NamedTuple):
    """An array of struct iovec, and `room` bytes of each of the first `entries` buffers."""

    argument: int
    length: int
    entries: int
    room: int
    word: int = _WORD


class Message(NamedTuple):
    """A struct msghdr: its name, its array of struct iovec, their buffers, and control data."""

    argument: int
    entries: int
    room: int
    word: int = _WORD


class Messages(NamedTuple):
    """An array of struct mmsghdr: the parts of a `Message` for each of the first MESSAGES."""

    argument: int
    length: int
    entries: int
    room: int
    word: int = _WORD


class Unpacked(NamedTuple):
    """Not a copy: the argument is the address of the call's arguments, 32 bits each.

    Attributes:
        argument: which one.
        calls: the first argument is the number of one of these: the call becomes `first` + that.
        first: the number to add.
    """

    argument: int
    calls: tuple[int, ...] = ()
    first: int = 0


Copy = (
    Unpacked
    | TraceText
    | Block
    | Pointed
    | Framed
    | Bytes
    | Nodes
    | Strings
    | Environment
    | Vector
    | Message
    | Messages
)


class Capture(NamedTuple):
    """The copies for a signature of a call.

    `again`: the end of the call retries a read that failed at its start: by then the kernel has
    brought the page in. After an execve the memory is another one.
    """

    start: tuple[Copy, ...] = ()
    end: tuple[Copy, ...] = ()
    again: bool = True


def piece_id(argument: int, part: int = 0, *, end: bool = False) -> int:
    """Return the id of a piece: part 0 is the first thing that the argument points to."""
    return argument << 8 | (END if end else 0) | part
