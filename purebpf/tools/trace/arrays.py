"""Arguments that point to arrays, as text. Pure.

Each function takes the call, the number of the argument, and its kind.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from purebpf.errors import errno_name
from purebpf.tools.trace import structs
from purebpf.tools.trace.constants import flag_names
from purebpf.tools.trace.kinds import SIGMASK_PART, Kind
from purebpf.tools.trace.quoting import quote
from purebpf.tools.trace.special import pointer
from purebpf.tools.trace.view import LONG, View

__all__ = [
    "descriptor_set",
    "descriptors",
    "descriptors_of",
    "entries",
    "environment",
    "errors",
    "events",
    "identities",
    "integers",
    "nodes",
    "pages",
    "polled",
    "processors",
    "select_mask",
    "signals",
    "strings",
    "times",
    "vector",
]

_ABBREVIATED = 32
"""Strings of argv that are shown."""


def descriptors(view: View, index: int, _: Kind) -> str:
    """The two of pipe(2): `[3, 4]`."""
    data = view.piece(index, end=True)
    if data is None or view.failed:
        return pointer(view.arguments[index])
    first, second = struct.unpack_from("<ii", data)
    return f"[{first}, {second}]"


def identities(view: View, index: int, kind: Kind) -> str:
    """Groups: `[0, 100]`."""
    data = view.piece(index, end=">" in kind.where)
    if data is None or (">" in kind.where and (view.failed or not view.arguments[0])):
        return pointer(view.arguments[index])
    count = view.length(kind.extent) or 0
    numbers = [str(number) for (number,) in struct.iter_unpack("<I", data[: len(data) // 4 * 4])]
    return f"[{', '.join(numbers + (['...'] if count > len(numbers) else []))}]"


def signals(view: View, index: int, kind: Kind) -> str:
    """A sigset_t: `[INT CHLD]`."""
    at_end = ">" in kind.where
    data = view.piece(index, end=at_end)
    if not data or (at_end and (view.failed or view.result is None)):
        return pointer(view.arguments[index])
    return structs.signal_set(data)


def select_mask(view: View, index: int, _: Kind) -> str:
    """The last argument of pselect6(2): `{sigmask=[CHLD], sigsetsize=8}`."""
    data, mask = view.piece(index), view.piece(index, SIGMASK_PART)
    if data is None:
        return pointer(view.arguments[index])
    address, size = struct.unpack_from("<QQ", data)
    shown_texts = structs.signal_set(mask) if mask else pointer(address)
    return f"{{sigmask={shown_texts}, sigsetsize={size}}}"


def polled(view: View, index: int, kind: Kind) -> str:
    """Return the request of poll(2): `[{fd=3, events=POLLIN}]`."""
    data = view.piece(index)
    if data is None:
        return pointer(view.arguments[index])
    shown_texts = [
        f"{{fd={fd}, events={flag_names('poll', events)}}}" if fd >= 0 else f"{{fd={fd}}}"
        for fd, events, _ in struct.iter_unpack("<ihH", data[: len(data) // 8 * 8])
    ]
    more = ["..."] if (view.length(kind.extent) or 0) > len(shown_texts) else []
    return f"[{', '.join(shown_texts + more)}]"


def descriptor_set(view: View, index: int, _: Kind) -> str:
    """A fd_set: `[3 5]`."""
    data = view.piece(index)
    if data is None:
        return pointer(view.arguments[index])
    return f"[{' '.join(map(str, descriptors_of(data, view.int32(0))))}]"


def descriptors_of(data: bytes, limit: int) -> list[int]:
    """The members of a fd_set."""
    bits = int.from_bytes(data, "little")
    return [fd for fd in range(min(limit, 8 * len(data))) if bits >> fd & 1]


def events(view: View, index: int, _: Kind) -> str:
    """Return the result of epoll_wait(2)."""
    data = view.piece(index, end=True)
    if data is None or view.failed:
        return pointer(view.arguments[index])
    size = structs.SIZES["epoll_event"]
    events = [structs.show("epoll_event", data[at : at + size]) for at in range(0, len(data), size)]
    more = ["..."] if (view.result or 0) > len(events) else []
    return f"[{', '.join(events + more)}]"


def vector(
    view: View,
    index: int,
    kind: Kind,
    *,
    part: int = 0,
    first: int = 1,
    left: int | None = None,
) -> str:
    """Buffers: `[{iov_base="text", iov_len=4}]`.

    Args:
        view: the call.
        index: the argument.
        kind: the argument's kind.
        part: the piece of the array.
        first: the piece of the first buffer.
        left: bytes that were written to them; None: the call's result.
    """
    at_end = ">" in kind.where
    data = view.piece(index, part, end=at_end)
    if data is None:
        return pointer(view.arguments[index])
    if at_end and left is None:
        left = max(view.result or 0, 0)
    entries = []
    for place, (base, size) in enumerate(struct.iter_unpack("<QQ", data[: len(data) // 16 * 16])):
        entries.append(_entry(view, view.piece(index, first + place, end=at_end), base, size, left))
        if left is not None:
            left = max(0, left - size)
    return f"[{', '.join(entries)}]"


def _entry(view: View, data: bytes | None, base: int, size: int, left: int | None) -> str:
    shown_texts = size if left is None else min(size, left)
    if data is None or (left is not None and view.failed):
        text = pointer(base)
    else:
        text = quote(
            data[: min(shown_texts, view.string_size)], more=shown_texts > view.string_size
        )
    return f"{{iov_base={text}, iov_len={size}}}"


def strings(view: View, index: int, _: Kind) -> str:
    """argv: `["ls", "-l"]`."""
    texts = []
    for part in range(_ABBREVIATED + 1):
        data = view.piece(index, part)
        if data is None:
            break
        text = data.rstrip(b"\0") if data.endswith(b"\0") else data
        texts.append(quote(text[: view.string_size], more=len(text) > view.string_size))
    if not texts:
        return pointer(view.arguments[index])
    if len(texts) > _ABBREVIATED:
        texts[_ABBREVIATED:] = ["..."]
    return f"[{', '.join(texts)}]"


def environment(view: View, index: int, _: Kind) -> str:
    """Return the number of environment variables: `0x7fff5 /* 20 vars */`."""
    address = view.arguments[index]
    count, part = 0, 0
    while (data := view.piece(index, part)) is not None:
        for (word,) in struct.iter_unpack("<Q" if view.word == LONG else "<I", data):
            if not word:
                plural = "" if count == 1 else "s"
                return f"{address:#x} /* {count} var{plural} */"
            count += 1
        part += 1
    return f"{address:#x} /* {count} or more vars */" if count else pointer(address)


def entries(view: View, index: int, _: Kind) -> str:
    """Return the number of entries of getdents(2): `0x5555 /* 5 entries */`."""
    data = view.piece(index, end=True)
    if data is None or view.failed:
        return pointer(view.arguments[index])
    count, at = 0, 0
    while at + 18 <= len(data):
        at += int.from_bytes(data[at + 16 : at + 18], "little") or len(data)
        count += 1
    more = " or more" if (view.result or 0) > len(data) else ""
    word = "entry" if count == 1 and not more else "entries"
    return f"{pointer(view.arguments[index])} /* {count}{more} {word} */"


def nodes(view: View, index: int, kind: Kind) -> str:
    """A set of NUMA nodes, as words: `[0x00000000000001]`."""
    data = view.piece(index, end=">" in kind.where)
    if data is None or not view.arguments[index] or (">" in kind.where and view.failed):
        return pointer(view.arguments[index])
    words = [f"{word:#016x}" if word else f"{0:016x}" for (word,) in struct.iter_unpack("<Q", data)]
    bits = (view.length(kind.extent) or 0) - 1
    return f"[{', '.join(words + (['...'] if bits > 64 * len(words) else []))}]"


def pages(view: View, index: int, kind: Kind) -> str:
    """Addresses: `[0x10000000, NULL]`."""
    return _list(view, index, kind, "<Q", pointer)


def integers(view: View, index: int, kind: Kind) -> str:
    """`[0, 1]`."""
    return _list(view, index, kind, "<i", str)


def errors(view: View, index: int, kind: Kind) -> str:
    """Numbers, or errors where they are negative: `[0, -ENOENT]`."""
    return _list(
        view, index, kind, "<i", lambda value: f"-{errno_name(-value)}" if value < 0 else str(value)
    )


def _list(view: View, index: int, kind: Kind, code: str, show: Callable[[int], str]) -> str:
    data = view.piece(index, end=">" in kind.where)
    if data is None or not view.arguments[index] or (">" in kind.where and view.failed):
        return pointer(view.arguments[index])
    size = struct.calcsize(code)
    shown_texts = [
        show(value) for (value,) in struct.iter_unpack(code, data[: len(data) // size * size])
    ]
    more = ["..."] if (view.length(kind.extent) or 0) > len(shown_texts) else []
    return f"[{', '.join(shown_texts + more)}]"


def processors(view: View, index: int, kind: Kind) -> str:
    """A cpu_set_t: `[0 1]`."""
    data = view.piece(index, end=">" in kind.where)
    if not data or (">" in kind.where and view.failed):
        return pointer(view.arguments[index])
    return f"[{' '.join(map(str, descriptors_of(data, 8 * len(data))))}]"


def times(view: View, index: int, kind: Kind) -> str:
    """Two times: `[{tv_sec=1, tv_nsec=0}, UTIME_NOW]`."""
    data = view.piece(index)
    if data is None:
        return pointer(view.arguments[index])
    unit = "nsec" if kind.name == "timespecs" else "usec"
    pairs = struct.iter_unpack("<qq", data)
    shown_texts = [structs.timespec(at, rest, unit, special=unit == "nsec") for at, rest in pairs]
    return f"[{', '.join(shown_texts)}]"
