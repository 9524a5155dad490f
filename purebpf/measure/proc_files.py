"""Files of /proc and /sys as text: "" for one that is not there, as processes end at any moment."""

from __future__ import annotations

import os
from collections.abc import Iterator

__all__ = ["entries", "link", "read_text", "words"]


def read_text(path: str) -> str:
    """The text of a file; "" if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def link(path: str) -> str:
    """The target of a symbolic link; "" if it cannot be read."""
    try:
        return os.readlink(path)
    except OSError:
        return ""


def entries(path: str) -> list[str]:
    """The names in a folder; none if it cannot be read."""
    try:
        return os.listdir(path)
    except OSError:
        return []


def words(path: str) -> Iterator[tuple[str, str]]:
    """Lines of a name and a value, parted by a blank or by a colon."""
    for line in read_text(path).splitlines():
        name, _, value = line.replace(":", " ", 1).partition(" ")
        yield name, value.strip()
