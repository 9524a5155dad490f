"""The arguments of 32-bit calls, and the memory to copy for them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from purebpf.abi import syscalls
from purebpf.tools.trace import capture
from purebpf.tools.trace.capture import Capture, Copy
from purebpf.tools.trace.compat.calls import (
    CALLS,
    FIRST_SOCKET_CALL,
    SAME_ARGUMENTS,
    SOCKET_CALLS,
    native_name,
)
from purebpf.tools.trace.compat.layouts import size_of
from purebpf.tools.trace.kinds import (
    ELEMENTS,
    INTERFACES_PART,
    INTERFACES_ROOM,
    SIGMASK_PART,
    SIOCGIFCONF,
    SPECIAL,
    THREAD_AREA_PART,
    Kind,
    Signature,
    capture_of,
    copies_of,
    described,
    native_names,
    signature,
)

__all__ = [
    "called",
    "compat_capture_of",
    "compat_signature",
    "unpack_socket_calls",
    "with_socket_calls",
]

_COMPAT_WORD = 4  # an int is the same in both ABIs

_I386_SIGNAL_MASK = 248
_I386_OLD_MASK, _I386_MORE_MASK = 80, 712
"""The same of i386, and both halves in struct sigframe_ia32 of sigreturn(2)."""

_I386_SPECIAL: Mapping[tuple[str, int], tuple[tuple[Copy, bool], ...]] = {
    ("clone", 2): ((capture.Block(2, 4), True),),
    ("clone", 3): ((capture.Block(3, 16), False),),
    ("clone3", 0): (
        (capture.Bytes(0, 1, 88), False),
        (capture.Pointed(0, 56, 16, THREAD_AREA_PART, text=False), False),
    ),
    ("fcntl", 2): ((capture.Block(2, 24), False), (capture.Block(2, 24), True)),
    ("fcntl64", 2): ((capture.Block(2, 24), False), (capture.Block(2, 24), True)),
    ("futex", 3): ((capture.Block(3, 8), False),),
    ("futex_time64", 3): ((capture.Block(3, 16), False),),
    ("get_mempolicy", 1): (),
    ("ioctl", 2): (
        *SPECIAL["ioctl", 2][:-1],
        (
            capture.Pointed(
                *(2, 4, INTERFACES_ROOM * 32 // 40, INTERFACES_PART, False),
                length_at=0, only=SIOCGIFCONF, word=_COMPAT_WORD,
            ),
            True,
        ),
    ),
    ("mbind", 3): (),
    ("migrate_pages", 2): (),
    ("migrate_pages", 3): (),
    **{
        (name, 5): (
            (capture.Block(5, 8), False),
            (capture.Pointed(5, 0, 8, SIGMASK_PART, text=False, word=_COMPAT_WORD), False),
        )
        for name in ("pselect6", "pselect6_time64")
    },
    ("rt_sigreturn", 0): ((capture.Framed(0, _I386_SIGNAL_MASK, 8), False),),
    ("set_mempolicy", 1): (),
    ("sigreturn", 0): (
        (capture.Framed(0, _I386_OLD_MASK, 4), False),
        (capture.Framed(0, _I386_MORE_MASK, 4, part=1), False),
    ),
    ("sendfile", 2): ((capture.Block(2, 4), False), (capture.Block(2, 4), True)),
}  # fmt: skip
"""Of i386, by its names."""


def compat_signature(name: str, abi: str) -> Signature | None:
    """Return the signature of a call of a 32-bit ABI; its name is the name of the native call
    like it.
    """
    if abi == "i386" and name in _i386_descriptions():
        return described(name, _i386_descriptions()[name])
    if name in _OTHER_IN_COMPAT and abi != "i386":
        return None
    call_signature = signature(native_name(name, native_names()))
    if call_signature and name in {"mmap2", "clone"}:  # an offset in pages, another order
        return call_signature._replace(name=name if name == "mmap2" else "clone_i386")
    return call_signature


_OTHER_IN_COMPAT = frozenset(
    {"clone", "fadvise64", "fallocate", "fanotify_mark", "mmap", "pread64", "pwrite64"}
    | {"readahead", "select", "sync_file_range"}
)
"""Calls of which 32-bit ABIs have an older form (mmap, select), or with longs in two halves."""


@cache
def _i386_descriptions() -> Mapping[str, str]:
    return dict(line.partition(" ")[::2] for line in CALLS.splitlines())


def compat_capture_of(name: str, string_size: int, abi: str) -> Capture:
    """Return the copies for a 32-bit call; structs in the layout of i386, of other ABIs not."""
    call_signature = compat_signature(name, abi)
    if call_signature is None:
        return Capture()
    if abi == "i386":
        return _i386_capture_of(name, call_signature, string_size)
    native = capture_of(call_signature.name, string_size)
    if name.endswith("64") and name != call_signature.name:  # times of 64 bits
        return native
    start, end = (tuple(filter(_is_alike, copies)) for copies in (native.start, native.end))
    return Capture(start, end, native.again)


def _is_alike(copy: Copy) -> bool:
    """Return True for strings and bytes, which look alike in all ABIs."""
    if isinstance(copy, capture.Block):
        return copy.size <= _COMPAT_WORD
    is_bytes = isinstance(copy, capture.Bytes) and copy.unit == 1
    return is_bytes or isinstance(copy, capture.TraceText)


def _i386_capture_of(name: str, call_signature: Signature, string_size: int) -> Capture:
    start: list[Copy] = []
    end: list[Copy] = []
    for index, kind in enumerate(call_signature.kinds):
        for copy, at_end in _i386_copies(name, call_signature.name, index, kind, string_size):
            (end if at_end else start).append(copy)
    first = (capture.Unpacked(0),) if name in SAME_ARGUMENTS else ()
    return Capture((*first, *start), tuple(end), again=name not in ("execve", "execveat"))


def _i386_copies(
    name: str, native: str, index: int, kind: Kind, size: int
) -> list[tuple[Copy, bool]]:
    """The copies of one argument, in the layouts of i386."""
    if (special := _I386_SPECIAL.get((name, index))) is not None:
        return list(special)
    if (at_ends := _WAYS.get(kind.where)) and (block := size_of(name, kind)):
        if kind.name == "pages":
            return [(capture.Bytes(index, kind.extent, 4 * ELEMENTS, 4), kind.where == ">")]
        return [(capture.Block(index, block), at_end) for at_end in at_ends]
    return [(_narrow(copy), at_end) for copy, at_end in copies_of(native, index, kind, size)]


_WAYS = {"<": (False,), ">": (True,), "<>": (False, True)}


def _narrow(copy: Copy) -> Copy:
    """A copy with addresses and lengths of 32 bits."""
    if isinstance(copy, capture.Strings | capture.Vector | capture.Message | capture.Messages):
        return copy._replace(word=_COMPAT_WORD)
    if isinstance(copy, capture.Block) and copy.size == 56:  # noqa: PLR2004 - struct msghdr
        return copy._replace(size=28)
    if isinstance(copy, capture.Bytes) and copy.unit == capture.MESSAGE_SIZE:
        return copy._replace(room=copy.room // 2, unit=copy.unit // 2)
    return copy


def unpack_socket_calls(wanted: frozenset[str]) -> Capture:
    """Return the copies for the start of socketcall(2): it becomes the call that it makes.

    Args:
        wanted: the wanted calls; if socketcall(2) has none of them, all.
    """
    names = [_ASKED_AS.get(name, name) for name in SOCKET_CALLS]
    calls = tuple(number for number, name in enumerate(names, 1) if name in wanted)
    every = tuple(range(1, len(names) + 1))
    return Capture((capture.Unpacked(1, calls or every, FIRST_SOCKET_CALL),))


_ASKED_AS = {"send": "sendto", "recv": "recvfrom"}
"""Calls without a number of their own."""


def with_socket_calls(wanted: set[str]) -> set[str]:
    """The calls with socketcall(2), if it makes one of them."""
    asked = {_ASKED_AS.get(name, name) for name in SOCKET_CALLS}
    return wanted | {"socketcall"} if wanted & asked else wanted


def called(abi: str, number: int) -> str:
    """The name of a call, also of one that socketcall(2) made."""
    call_index = number - FIRST_SOCKET_CALL - 1
    if abi == "i386" and 0 <= call_index < len(SOCKET_CALLS):
        return SOCKET_CALLS[call_index]
    return syscalls.name(abi, number)
