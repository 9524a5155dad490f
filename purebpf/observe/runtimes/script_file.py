"""`find_script_file`: the file of a process that has the interpreter of PHP or Ruby."""

from __future__ import annotations

from collections.abc import Iterable

from purebpf.symbols.proc_maps import Mapping, parse_maps
from purebpf.symbols.runtimes import script_engine
from purebpf.syscall import proc

__all__ = ["find_script_file", "script_language"]


def find_script_file(
    pid: int, language: str, mappings: Iterable[Mapping] | None = None
) -> Mapping | None:
    """The first executable mapping of the file that has an interpreter, by the names of files.

    A program that is called like it may only load the library that has it: libraries come first.

    Args:
        pid: the process.
        language: "php" or "ruby".
        mappings: its executable mappings, if they were just read.

    Raises:
        KernelError: the process is another user's.
    """
    if mappings is None:
        mappings = parse_maps(proc.maps(pid) or "")
    files = [one for one in mappings if script_engine(one.file.path) == language]
    libraries = (one for one in files if "/lib" in one.file.path[one.file.path.rfind("/") :])
    return next(libraries, files[0] if files else None)


def script_language(pid: int, mappings: Iterable[Mapping] | None = None) -> str:
    """Return the language of the interpreter in a process, "php" or "ruby"; "" if it has neither.

    Args:
        pid: the process.
        mappings: its executable mappings, if they were just read.

    Raises:
        KernelError: the process is another user's.
    """
    if mappings is None:
        mappings = parse_maps(proc.maps(pid) or "")
    return next(filter(None, (script_engine(one.file.path) for one in mappings)), "")
