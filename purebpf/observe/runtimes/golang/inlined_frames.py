"""Stacks of Go programs with the functions that the compiler inlined."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from purebpf.observe.runtimes.golang.goroutines_now import inlined_functions
from purebpf.symbols.frame import Frame, Unknown

if TYPE_CHECKING:
    from purebpf.observe.symbols.symbolizer import Symbolizer

__all__ = ["expanded", "name_stacks", "return_addresses"]


def name_stacks(
    symbolizer: Symbolizer, pid: int, stacks: Iterable[Sequence[int]]
) -> list[tuple[Frame | Unknown, ...]]:
    """Return the frames of stacks of a Go program, inlined functions among them."""
    named = [tuple(symbolizer.user_stack(pid, addresses)) for addresses in stacks]
    wanted = {address for stack in named for address in return_addresses(stack)}
    inlined = inlined_functions(pid, wanted)
    return [tuple(expanded(stack, inlined)) for stack in named]


def expanded(
    stack: Iterable[Frame | Unknown], inlined: Mapping[int, Iterable[str]]
) -> Iterator[Frame | Unknown]:
    """Yield the frames of a stack, and before each one the functions that are inlined in it.

    Args:
        stack: the innermost frame first.
        inlined: names by return address, the innermost first.
    """
    for frame, address in zip(stack, return_addresses(stack), strict=True):
        for name in inlined.get(address, ()):
            yield Frame(name, 0, frame.module, frame.address, "inlined")
        yield frame


def return_addresses(stack: Iterable[Frame | Unknown]) -> list[int]:
    """The address behind each instruction; the innermost one is not over yet."""
    return [frame.address + (not at) for at, frame in enumerate(stack)]
