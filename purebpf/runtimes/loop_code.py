"""The code of an interpreter's loop, with the part that the compiler put elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from purebpf.symbols.code_range import CodeRange

__all__ = ["cold_part"]

_MOST_CODE = 1 << 20
"""Bytes of an evaluation loop: those of CPython have 30 to 200 thousand."""
_MOST_JUMPS = 10_000
_JCC = 0x0F
_JCC_KINDS = range(0x80, 0x90)


def cold_part(
    code: bytes, loop: CodeRange, function: Callable[[int], tuple[int, int] | None]
) -> CodeRange | None:
    """The part of the evaluation loop that the compiler put elsewhere, without its symbol.

    Conditional jumps leave a function for its own cold part only: the target of most of them.

    Args:
        code: the instructions of `loop`; not more than a MiB of them is looked at.
        loop: where they are.
        function: where the code around an address starts and ends, by call frame information.
    """
    targets: Counter[tuple[int, int]] = Counter()
    code = code[:_MOST_CODE]
    jumps = 0
    other_part: tuple[int, int] | None = None
    at = code.find(_JCC)
    while 0 <= at <= len(code) - 6 and jumps < _MOST_JUMPS:
        if code[at + 1] in _JCC_KINDS:
            target = (
                loop.start + at + 6 + int.from_bytes(code[at + 2 : at + 6], "little", signed=True)
            )
            if not loop.start <= target < loop.end:
                jumps += 1
                if other_part is None or not other_part[0] <= target < other_part[1]:
                    other_part = function(target)
                if other_part is not None and other_part[0] != loop.start:
                    targets[other_part] += 1
        at = code.find(_JCC, at + 1)
    common = targets.most_common(1)
    return CodeRange(*common[0][0]) if common and common[0][1] > 1 else None
