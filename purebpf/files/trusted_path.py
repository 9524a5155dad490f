"""Programs on PATH, without those that another user may have put there.

An empty or relative entry of PATH is the current directory, and a directory that any user may write
is not root's: a `clang-99` in it would run as the user who compiles.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator

__all__ = ["any_user_may_write", "find_program", "program_directories"]


def program_directories() -> Iterator[str]:
    """The directories of PATH that are named from the root, and that not every user may write."""
    for directory in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if os.path.isabs(directory) and not any_user_may_write(directory):
            yield directory


def find_program(name: str) -> str | None:
    """The path of a program: as the shell finds it, in these directories; None: it is not there.

    A name with a slash is a path from the current directory.
    """
    if "/" in name:
        return os.path.abspath(name)
    directories = os.pathsep.join(program_directories())
    return shutil.which(name, path=directories) if directories else None


def any_user_may_write(directory: str) -> bool:
    """Return True if others may put files into a directory; False if there is none."""
    try:
        return bool(os.stat(directory).st_mode & stat.S_IWOTH)
    except OSError:
        return False
