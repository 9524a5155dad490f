"""Folded stacks, one line each, for flame graphs: `comm;root;...;leaf count`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from purebpf.report.names import MISSED_KERNEL, MISSED_USER, UNKNOWN, printable
from purebpf.report.profile import Profile, Row, Stack
from purebpf.symbols.frame import Frame, Unknown

__all__ = ["lines"]


def lines(profile: Profile, *, delimiter: bool = False, annotations: bool = False) -> Iterator[str]:
    """One line a distinct path, the heaviest last.

    User frames come first, root to leaf, then kernel frames. Rows that fold to the same line
    (other offsets, other processes of the same name) are added up. A `;` inside a name becomes a
    `:`, since it separates frames.

    Args:
        profile: what to fold; weights are added as they are.
        delimiter: put a `-` between a user and a kernel stack.
        annotations: mark kernel frames with `_[k]`.
    """
    names = _Names(annotations=annotations)
    folded: Counter[str] = Counter()
    for row in profile.rows():
        folded[_path(row, names, delimiter=delimiter)] += row.weight
    for path, weight in sorted(folded.items(), key=lambda item: (item[1], item[0])):
        yield f"{path} {weight}\n"


def _path(row: Row, names: _Names, *, delimiter: bool) -> str:
    path = [_name(row.labels.comm)]
    path += names.of(row.user, MISSED_USER)
    if delimiter and row.user and row.kernel:
        path.append("-")
    path += names.of(row.kernel, MISSED_KERNEL)
    return ";".join(path)


def _name(text: str) -> str:
    return printable(text).replace(";", ":")


class _Names:
    """The names of a stack from root to leaf, remembered by entry."""

    def __init__(self, *, annotations: bool) -> None:
        self._mark = "_[k]" if annotations else ""
        self._known: dict[Frame | Unknown, str] = {}

    def of(self, stack: Stack | None, missed: str) -> list[str]:
        if stack is None:
            return [missed]
        known = self._known
        names = []
        for entry in reversed(stack):
            name = known.get(entry)
            if name is None:
                name = known[entry] = self._spell(entry)
            names.append(name)
        return names

    def _spell(self, entry: Frame | Unknown) -> str:
        name = UNKNOWN if isinstance(entry, Unknown) else _name(entry.name)
        return name + self._mark if entry.kind == "kernel" else name
