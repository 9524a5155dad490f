"""The file of a process that has PHP's engine: php, php-fpm, or Apache's module."""

from __future__ import annotations

from collections.abc import Iterable

from purebpf.observe.runtimes.cpython.running import program_path
from purebpf.symbols.proc_maps import Mapping, parse_maps
from purebpf.symbols.runtimes import script_engine
from purebpf.syscall import proc

__all__ = ["find_php_file", "runs_php"]


def find_php_file(pid: int, mappings: Iterable[Mapping] | None = None) -> Mapping | None:
    """The first executable mapping of the file that has PHP's engine; None: a process has none.

    Args:
        pid: the process.
        mappings: its executable mappings, if they were just read.

    Raises:
        KernelError: the process is another user's.
    """
    if mappings is None:
        mappings = parse_maps(proc.maps(pid) or "")
    return next((one for one in mappings if script_engine(one.file.path) == "php"), None)


def runs_php(pid: int, mappings: Iterable[Mapping] | None = None) -> bool:
    """Return True if a process has PHP's engine, by the names of its files alone."""
    if mappings is None:
        return script_engine(program_path(pid)) == "php"
    return any(script_engine(one.file.path) == "php" for one in mappings)
