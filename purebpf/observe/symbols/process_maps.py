"""The mappings of a process, where copies of files' code count as their files."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from purebpf.symbols.proc_maps import may_have_anonymous_code
from purebpf.syscall import proc

if TYPE_CHECKING:
    from purebpf.observe.symbols.copied_text import Copies

__all__ = ["read_maps"]


def read_maps(pid: int, tell: Callable[[Copies], object] | None = None) -> str | None:
    """Return /proc/PID/maps, where copies of files' code are lines of these files.

    None if there is no such process.

    Args:
        pid: the process.
        tell: called with the copies, if the process has anonymous code.

    Raises:
        KernelError: EACCES, the process is another user's.
    """
    text = proc.maps(pid)
    if text is None or not may_have_anonymous_code(text):
        return text
    from purebpf.observe.symbols.copied_text import find_copies  # only where code is generated
    from purebpf.symbols.copied_text import replace_lines

    copies = find_copies(pid, text)
    if tell is not None:
        tell(copies)
    return replace_lines(text, copies.parts)
