"""64-bit numbers of frames, stacks and series: the same on every host, hub and day. Pure.

They are hashes of names, so that a new build and another boot keep their stacks. Signed, because
Spark has no unsigned 64-bit type that it reads as a number.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from hashlib import blake2b

__all__ = ["frame_id", "series_id", "stack_id", "text_id"]


def frame_id(function: str, module: str, build_id: str, file_offset: int) -> int:
    """A function by its name and the name of its file; else a place in a build of a file."""
    if function:
        return text_id(("function", module.rpartition("/")[2], function))
    return text_id(("place", build_id, str(file_offset)))


def stack_id(frames: Sequence[int]) -> int:
    """A stack by its frames, leaf first."""
    return _number(array("q", frames).tobytes())


def series_id(values: Iterable[str]) -> int:
    """Return the id of a series, from all its facts, in a fixed order."""
    return text_id(("series", *values))


def text_id(words: Iterable[str]) -> int:
    """Words, in their order."""
    return _number("\0".join(words).encode("utf-8", "surrogatepass"))


def _number(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little", signed=True)
