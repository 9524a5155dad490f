"""The start of each type of a BTF blob: one pass over its type section."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence

from purebpf.btf.types.decode import Strides

__all__ = ["MalformedError", "find_starts"]

_KNOWN = 4096
_known: dict[int, int] = {}
"""The words that types take, by info word; so few are in use that they are kept for all blobs."""

_WORD = 4


class MalformedError(Exception):
    """A type has no end.

    Attributes:
        where: which type, and the word it starts at.
        problem: the fault.
    """

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(where, problem)
        self.where = where
        self.problem = problem


def find_starts(words: array[int] | memoryview[int], layout: bytes, first: int) -> array[int]:
    """The first word of each type.

    Args:
        words: the type section.
        layout: the BTF's description of the sizes of its kinds.
        first: the id of the first type, for errors.

    Raises:
        MalformedError: a type of an unknown kind, or one that is cut off.
    """
    end = len(words)
    infos = array("I")  # indexed faster than a memoryview
    infos.frombytes(memoryview(words).cast("B")[_WORD:])  # one copy: new pages are slow
    strides = Strides(layout)
    try:
        starts = array("I", _starts(infos, end, strides))
    except (KeyError, IndexError) as error:
        raise _malformed(infos, strides, first, error) from None
    if starts and starts[-1] + strides[infos[starts[-1]]] != end:
        raise _malformed(infos, strides, first, IndexError())
    return starts


def _starts(infos: Sequence[int], end: int, strides: Strides) -> Iterator[int]:
    """The first word of each type; `infos[at]` is the second word of the type at word `at`.

    A dict that is not of a subclass, and a generator instead of `append`: a third less time.
    """
    known = {} if strides.layout or len(_known) > _KNOWN else _known
    at = 0
    while at < end:
        try:
            while at < end:
                yield at
                at += known[infos[at]]
        except KeyError:
            info = infos[at]
            known[info] = strides[info]
            at += known[info]


def _malformed(
    infos: Sequence[int], strides: Strides, first: int, error: Exception
) -> MalformedError:
    """Return an error about a type, with its number: the types before it are counted again."""
    starts: list[int] = []
    at, end = 0, len(infos) + 1
    try:
        while at < end:
            starts.append(at)
            at += strides[infos[at]]
    except (KeyError, IndexError):
        pass
    type_id = first + len(starts) - 1
    if isinstance(error, KeyError):
        return MalformedError(
            f"type {type_id} at word {at}", f"kind {error} is not one of BTF version 1"
        )
    return MalformedError(
        f"type {type_id} at word {starts[-1]}", "runs over the end of the type section"
    )
