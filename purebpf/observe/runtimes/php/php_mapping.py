"""The file of a process that has PHP's engine: php, php-fpm, or Apache's module."""

from __future__ import annotations

from purebpf.symbols.proc_maps import Mapping, parse_maps
from purebpf.symbols.runtimes import script_engine
from purebpf.syscall import proc

__all__ = ["find_php_file"]


def find_php_file(pid: int) -> Mapping | None:
    """The first executable mapping of the file that has PHP's engine; None: a process has none.

    Raises:
        KernelError: the process is another user's.
    """
    mappings = parse_maps(proc.maps(pid) or "")
    return next((one for one in mappings if script_engine(one.file.path) == "php"), None)
