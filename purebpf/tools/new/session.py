"""Writes the folder of a new tool."""

from __future__ import annotations

import errno
import os
from contextlib import suppress

from purebpf.errors import KernelError, NotSupportedError
from purebpf.tools.new.templates import FILES

__all__ = ["create"]

_NAME = "NAME"


def create(name: str, directory: str = "") -> tuple[list[str], str]:
    """Make the folder `name`, and compile its C.

    Returns:
        The paths that were written, and why the C was not compiled, or "".

    Raises:
        KernelError: it exists already, or the kernel refuses to create it.
        CompileError: the compiler refused the C.
    """
    from purebpf.build.generation import generate

    folder = os.path.join(directory, name)
    try:
        os.mkdir(folder)
    except OSError as error:
        fix = "use another name" if error.errno == errno.EEXIST else ""
        raise KernelError("mkdir(2)", error.errno or 0, folder, fix=fix) from None
    paths = []
    fd = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(fd).st_uid != os.geteuid():
            raise KernelError("open(2)", errno.EPERM, folder, why="another user has exchanged it")
        for template, text in FILES.items():
            name_here = template.replace(_NAME, name)
            _write(fd, name_here, text.replace(_NAME, name))
            paths.append(os.path.join(folder, name_here))
    finally:
        os.close(fd)
    try:
        paths += generate(os.path.join(folder, name))
    except NotSupportedError as error:
        return paths, str(error)
    return paths, ""


def _write(fd: int, path: str, text: str) -> None:
    """Write a new file below a directory, which may have been moved; `path` has one part or two."""
    above, _, _ = path.rpartition("/")
    if above:
        with suppress(FileExistsError):
            os.mkdir(above, dir_fd=fd)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, flags, 0o666, dir_fd=fd), "w", encoding="utf-8") as file:
        file.write(text)
