"""Several objects linked to one, by bpftool."""

from __future__ import annotations

import os
import subprocess
from tempfile import TemporaryDirectory

from purebpf.errors import LinkError, NotSupportedError
from purebpf.files.trusted_path import find_program

__all__ = ["link"]

_INSTALL = "bpftool is not installed. Debian: apt-get install bpftool"


def link(*objects: bytes | str | os.PathLike[str]) -> bytes:
    """The object that `bpftool gen object` makes of several.

    Externs of one are the functions, maps and variables of another; static names stay apart.

    Args:
        objects: results of `compile`, or paths.

    Raises:
        LinkError: bpftool refused; has its words.
        NotSupportedError: there is no bpftool.
        OSError: a file cannot be read.
    """
    bpftool = find_program("bpftool")
    if bpftool is None:
        raise NotSupportedError("linking BPF objects", _INSTALL)
    with TemporaryDirectory(prefix="purebpf-") as directory:
        paths = []
        for number, source in enumerate(objects):
            path = os.path.join(directory, f"{number}.bpf.o")
            with open(path, "wb") as file:
                file.write(_read(source))
            paths.append(path)
        target = os.path.join(directory, "linked.bpf.o")
        command = [bpftool, "gen", "object", target, *paths]
        done = subprocess.run(command, check=False, capture_output=True)
        if done.returncode:
            said = (done.stderr or done.stdout).decode(errors="replace").strip()
            raise LinkError(
                "bpftool gen object", "linking", said.replace(f"{directory}{os.sep}", "")
            )
        return _read(target)


def _read(source: bytes | str | os.PathLike[str]) -> bytes:
    if isinstance(source, bytes):
        return source
    with open(source, "rb") as file:
        return file.read()
