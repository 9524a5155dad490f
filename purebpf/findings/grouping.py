"""Stays of one program that belong together: in the same own function. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable

from purebpf.findings.evidence import Evidence, Stay, seconds_of

__all__ = ["by_function"]


def _same(_: Stay) -> Hashable:
    return None


def by_function(
    evidence: Evidence, stays: Iterable[Stay], also: Callable[[Stay], Hashable] = _same
) -> list[list[Stay]]:
    """Groups of one program and own function, or else innermost function.

    Stays whose user stack could not be read join the largest group of their program.

    Args:
        evidence: of the stays.
        stays: the stays to group.
        also: a further part of the key.
    """
    groups: dict[tuple[tuple[str, str], Hashable], dict[str, list[Stay]]]
    groups = defaultdict(lambda: defaultdict(list))
    for stay in stays:
        named = stay.own.name if stay.own else next((f.name for f in stay.user if f.name), "")
        groups[evidence.family(stay.pid), also(stay)][named].append(stay)
    for functions in groups.values():
        unread = functions.pop("", [])
        if unread and not functions:
            functions[""] = unread
        elif unread:
            max(functions.values(), key=seconds_of).extend(unread)
    return [group for functions in groups.values() for group in functions.values()]
