"""Refuses to run where Python would import files of other users.

`python -m` puts the current directory first into sys.path. In /tmp, a file argparse.py of another
user would then run as root. The command `purebpf`, and `python -P` (PYTHONSAFEPATH), do not look
there. Python's imports before purebpf cannot be undone: a warning says so, and nothing ran here.

Only modules that Python has imported before its path was set are used until that entry is gone.
"""

from __future__ import annotations

import os
import stat
import sys

__all__ = ["refuse_unsafe"]

_STATUS = 2


def refuse_unsafe() -> None:
    """Exit with a message if `python -m` runs us in a directory that other users may write."""
    if sys.argv[:1] != ["-m"] or sys.flags.safe_path or not sys.path:  # -m: runpy looks for us
        return
    first = sys.path[0]
    why = _why_unsafe(first)
    if not why:
        return
    del sys.path[0]
    import shlex

    words = [sys.executable, "-P", *sys.orig_argv[1:]]
    sys.stderr.write(
        f"purebpf: refusing to import Python modules from {first!r}: {why}.\n"
        f"Use the command `purebpf`, or: {shlex.join(words)}\n"
    )
    raise SystemExit(_STATUS)


def _why_unsafe(directory: str) -> str:
    """Return how another user could put a module there; "": none can."""
    try:
        status = os.stat(directory)
    except OSError:
        return ""  # nothing is imported from there
    mode, groups = status.st_mode, {0, os.getegid(), _sudo("SUDO_GID")}
    if mode & stat.S_IWOTH:
        return "any user may write there"
    if mode & stat.S_IWGRP and status.st_gid not in groups:
        return f"group {status.st_gid} may write there"
    # a checkout that we run from is its owner's, whatever is imported besides
    is_ours = __file__.startswith(os.path.join(os.path.abspath(directory), ""))
    if not is_ours and status.st_uid not in (0, os.geteuid(), _sudo("SUDO_UID")):
        return f"it belongs to UID {status.st_uid}"
    return ""


def _sudo(name: str) -> int:
    """The number of the user who has become root by sudo(8), or -1."""
    text = os.environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else -1
