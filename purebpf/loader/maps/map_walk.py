"""The keys of a map, one system call each, while others change it.

BPF_MAP_GET_NEXT_KEY after a key that has vanished starts over with the first one. So each key
seen is remembered: it is yielded once, and meeting it again is walking old ground.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator

from purebpf.syscall.map_element import Elements

__all__ = ["Interrupted", "walk"]

_ROUNDS = 16
"""Steps that are allowed, in multiples of max_entries."""


class Interrupted(RuntimeError):  # noqa: N818 - like dict's: not an error of the map
    """The map changed faster than it could be walked."""


def walk(elements: Elements, max_entries: int) -> Iterator[bytes]:
    """Every key that is there from beginning to end, once, and perhaps some that come and go.

    Never endless: it gives up after 16 times `max_entries` steps.

    Raises:
        OSError: the keys of this map cannot be listed; its errno is the kernel's.
        ValueError: the map is closed.
        Interrupted: so many keys came and went that the end was not reached.
    """
    seen: set[bytes] = set()
    steps = _ROUNDS * max_entries + 1024
    key = None
    while (key := _after(elements, key)) is not None:
        if key not in seen:
            seen.add(key)
            yield key
        if (steps := steps - 1) < 0:
            raise Interrupted(f"the map changed faster than the walk: {len(seen)} keys were seen")


def _after(elements: Elements, key: bytes | None) -> bytes | None:
    """The key after another one, or the first; None at the end."""
    element = elements.take()
    try:
        if key is None:
            result = element.first()
        else:
            element.key[:] = key
            result = element.next()
        if not result:
            return bytes(element.next_key)
    finally:
        elements.give(element)
    if result != -errno.ENOENT:
        raise OSError(-result, "BPF_MAP_GET_NEXT_KEY")
    return None
