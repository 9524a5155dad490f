"""Write a file in a directory that others may write to, too."""

from __future__ import annotations

import os
from contextlib import suppress

__all__ = ["write_in"]


def write_in(folder: int, name: str, data: bytes, mode: int | None = None) -> None:
    """Write a file: whole or not at all, and through no link.

    Args:
        folder: an open directory.
        name: of an entry in it, which is replaced, also if it is a symbolic link.
        data: its content.
        mode: its mode, whatever the umask; None: 0666 less the umask.

    Raises:
        OSError: there is no room, or this process may not write there; the partial file is removed.
    """
    part = f".{name}.part"
    with suppress(FileNotFoundError):  # what a killed agent left
        os.unlink(part, dir_fd=folder)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with open(os.open(part, flags, 0o666, dir_fd=folder), "wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(part, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with suppress(OSError):
            os.unlink(part, dir_fd=folder)
        raise
