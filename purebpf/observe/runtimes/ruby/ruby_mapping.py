"""The file of a process that has Ruby's interpreter: its library, or the program."""

from __future__ import annotations

from collections.abc import Iterable

from purebpf.observe.runtimes.cpython.running import program_path
from purebpf.symbols.proc_maps import Mapping, parse_maps
from purebpf.symbols.runtimes import script_engine
from purebpf.syscall import proc

__all__ = ["find_ruby_file", "runs_ruby"]


def find_ruby_file(pid: int, mappings: Iterable[Mapping] | None = None) -> Mapping | None:
    """The first executable mapping of the file that has Ruby; None: a process has none.

    Args:
        pid: the process.
        mappings: its executable mappings, if they were just read.

    Raises:
        KernelError: the process is another user's.
    """
    if mappings is None:
        mappings = parse_maps(proc.maps(pid) or "")
    files = [one for one in mappings if script_engine(one.file.path) == "ruby"]
    libraries = (one for one in files if "/libruby" in one.file.path)
    return next(libraries, files[0] if files else None)


def runs_ruby(pid: int, mappings: Iterable[Mapping] | None = None) -> bool:
    """Return True if a process has Ruby, by the names of its files alone."""
    if mappings is None:
        return script_engine(program_path(pid)) == "ruby"
    return any(script_engine(one.file.path) == "ruby" for one in mappings)
