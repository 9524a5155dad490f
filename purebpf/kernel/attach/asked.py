"""What attaching is asked for, and otherwise what the program's section says."""

from __future__ import annotations

from array import array
from typing import TypeVar

from purebpf.abi.sections import find_section
from purebpf.kernel.program import Program

__all__ = ["at_return", "checked_cookie", "cookies", "target_of"]

Target = TypeVar("Target")


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
    """Whether the program runs when the function returns: `SEC("kretprobe/vfs_read")`."""
    if returns is not None:
        return returns
    section = find_section(program.section)
    return section is not None and section.definition.prefix.startswith(("kret", "uret"))


def cookies(cookie: int, count: int) -> bytes | None:
    """The cookie for each of `count` places; None: there is none.

    Raises:
        ValueError: no number of 64 bits.
    """
    return array("Q", [checked_cookie(cookie)]).tobytes() * count if cookie else None


def checked_cookie(cookie: int) -> int:
    """The cookie, which fits into what the kernel has for it.

    Raises:
        ValueError: no number of 64 bits.
    """
    if not 0 <= cookie < 1 << 64:
        raise ValueError(f"a cookie is a number of 64 bits, not {cookie}")
    return cookie
