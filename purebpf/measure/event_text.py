"""Text in records of events, which programs pass to the kernel and which may be any bytes. Pure."""

from __future__ import annotations

__all__ = ["decode", "join_names", "join_path"]


def decode(text: bytes) -> str:
    """Up to the first NUL; bytes that are not UTF-8 are escaped."""
    return text.partition(b"\0")[0].decode("utf-8", "backslashreplace")


def join_names(names: bytes, *, whole: bool) -> str:
    """A path of the names on the way up to the root, each with its NUL, the innermost first.

    Args:
        names: `lib`, `usr` for /usr/lib.
        whole: they reach up to the root; else the path begins with `...`.
    """
    path = b"/".join(reversed(names.split(b"\0"))).decode("utf-8", "backslashreplace")
    return (path or "/") if whole else f"...{path}"


def join_path(directory: str, path: str) -> str:
    """Join a directory and a path relative to it; `.` at the beginning of the path is dropped."""
    while path.startswith("./"):
        path = path[2:].lstrip("/")
    if not path or path == ".":
        return directory
    return f"{directory.removesuffix('/')}/{path}"
