"""The file of a process that has V8: the program node, or its library."""

from __future__ import annotations

from purebpf.symbols.proc_maps import Mapping, parse_maps
from purebpf.symbols.runtimes import is_node
from purebpf.syscall import proc

__all__ = ["find_node"]

_LIBRARY = "/libnode.so"


def find_node(pid: int) -> Mapping | None:
    """The first executable mapping of a process's node, or of its library if it has that.

    Returns:
        the mapping; None: it has neither.

    Raises:
        KernelError: the process is another user's.
    """
    mappings = [one for one in parse_maps(proc.maps(pid) or "") if is_node(one.file.path)]
    libraries = [one for one in mappings if _LIBRARY in one.file.path]
    return next(iter(libraries + mappings), None)
