"""Write a file in a directory that others may write to, too."""

from __future__ import annotations

import os
from contextlib import suppress

from purebpf.files.atomic_file import link_part, open_part
from purebpf.files.output_path import OutputPlace

__all__ = ["write_in"]


def write_in(folder: int, name: str, data: bytes, mode: int | None = None) -> None:
    """Write a file: whole or not at all, also if another agent does the same, and through no link.

    Args:
        folder: an open directory.
        name: of an entry in it, which is replaced, also if it is a symbolic link.
        data: its content.
        mode: its mode, whatever the umask; None: 0666 less the umask.

    Raises:
        OSError: there is no room, or this process may not write there; the partial file is removed.
    """
    place = OutputPlace(folder, f".{name}", name, None)
    part, fd = open_part(place, 0o666)
    try:
        with open(fd, "wb") as file:
            if mode is not None:
                os.fchmod(fd, mode)
            file.write(data)
            file.flush()
            os.fsync(fd)
            part = part or link_part(fd, place)
        os.rename(part, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        if part:
            with suppress(OSError):
                os.unlink(part, dir_fd=folder)
        raise
