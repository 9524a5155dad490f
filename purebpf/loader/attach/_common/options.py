"""Options of attaching: the caller's, else the ones from the program's section."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from typing import TypeVar

from purebpf.loader.programs.program import Program

__all__ = ["Functions", "at_return", "check_cookie", "each_cookie", "pack_cookies", "target_of"]

Target = TypeVar("Target")
Functions = str | Iterable[str] | Mapping[str, int]
"""A function or pattern, several, or each with its cookie."""


def target_of(program: Program, target: Target | None, question: str) -> Target | str:
    """The target, or the one in the section's name: `SEC("kprobe/vfs_read")`.

    Raises:
        TypeError: there is neither; asks the `question`.
    """
    if target is not None:
        return target
    if program.target:
        return program.target
    raise TypeError(f"program {program.name!r}: {question}")


def at_return(program: Program, returns: bool | None) -> bool:
    """Return True if the program runs when the function returns: `SEC("kretprobe/vfs_read")`."""
    if returns is not None:
        return returns
    definition = program.definition
    return definition is not None and definition.prefix.startswith(("kret", "uret"))


def each_cookie(functions: Functions, cookie: int, description: str) -> dict[str, int]:
    """The functions or patterns, each once, and their cookies: their own, or the one for all.

    Raises:
        TypeError: their own, and one for all.
        ValueError: there are none; a cookie that is not a number of 64 bits.
    """
    if not isinstance(functions, Mapping):
        names = [functions] if isinstance(functions, str) else functions
        cookies = dict.fromkeys(names, check_cookie(cookie))
    elif cookie:
        raise TypeError(
            f"{description}: a mapping has a cookie for each function, so cookie= cannot be set"
        )
    else:
        cookies = {name: check_cookie(own) for name, own in functions.items()}
    if not cookies:
        raise ValueError(f"{description}: at least one function is required")
    return cookies


def pack_cookies(cookies: Iterable[int]) -> bytes | None:
    """The cookies as the kernel takes them; None, which every kernel takes, where all are 0."""
    packed = array("Q", cookies)
    return packed.tobytes() if any(packed) else None


def check_cookie(cookie: int) -> int:
    """Return the cookie after checking that it fits into the kernel's field.

    Raises:
        ValueError: no number of 64 bits.
    """
    if not 0 <= cookie < 1 << 64:
        raise ValueError(f"a cookie must fit in 64 bits, not {cookie}")
    return cookie
