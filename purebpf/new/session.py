"""Writes the folder of a new tool."""

from __future__ import annotations

import errno
import os

from purebpf.errors import KernelError, NotSupportedError
from purebpf.new.templates import FILES

__all__ = ["create"]

_NAME = "NAME"


def create(name: str, directory: str = "") -> tuple[list[str], str]:
    """Make the folder `name`, and compile its C.

    Returns:
        The paths that were written, and why the C was not compiled, or "".

    Raises:
        KernelError: it is there already, or cannot be made.
        CompileError: the compiler refused the C.
    """
    from purebpf.build.generate import generate

    folder = os.path.join(directory, name)
    try:
        os.mkdir(folder)
    except OSError as error:
        fix = "use another name" if error.errno == errno.EEXIST else ""
        raise KernelError("mkdir(2)", error.errno or 0, folder, fix=fix) from None
    paths = []
    for template, text in FILES.items():
        path = os.path.join(folder, template.replace(_NAME, name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(_NAME, name))
        paths.append(path)
    try:
        paths += generate(os.path.join(folder, name))
    except NotSupportedError as error:
        return paths, str(error)
    return paths, ""
