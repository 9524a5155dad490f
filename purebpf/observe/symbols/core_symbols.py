"""The kernel's own symbols, kept until the next boot: $XDG_CACHE_HOME/purebpf/kernel.

The kernel takes 50 ms of CPU time to print them, which a file does not. They do not change while it
runs; symbols of modules and BPF programs do, and are not in the file. Who may read such a file: see
`CacheFiles`. Its beginning must equal the kernel's present output: where that shows zeros, nothing
is stored, and no stored text is used.
"""

from __future__ import annotations

import os

from purebpf.errors import KernelError
from purebpf.files.cache_files import CacheFiles, cache_home
from purebpf.syscall import proc

__all__ = ["CoreSymbols"]

_LIMIT = 48 << 20
"""Bytes of all boots together: 5 to 10 MB each."""
_COMPARED = 1 << 16


class CoreSymbols:
    """The part of /proc/kallsyms before modules, for this boot. Nothing raises.

    Args:
        directory: where the files are; None: where the user's caches are.
    """

    def __init__(self, directory: str | None = None) -> None:
        folder = directory or os.path.join(cache_home(), "purebpf", "kernel")
        self._files = CacheFiles(folder, _LIMIT)
        self._is_kept = False

    @property
    def is_kept(self) -> bool:
        """True if `load` has found a text."""
        return self._is_kept

    def load(self) -> bytes | None:
        """As an earlier run left it; None where none did, or the kernel shows something else."""
        try:
            if not (key := _key()):
                return None
            reader = self._files.open(key)
            text = reader(0, reader.size)
            first_lines = proc.kallsyms(_COMPARED)
        except (OSError, KernelError):
            return None
        self._is_kept = bool(first_lines) and text.endswith(b"\n") and text.startswith(first_lines)
        return text if self._is_kept else None

    def keep(self, text: bytes) -> None:
        """Write it for other runs."""
        try:
            if len(text) > _COMPARED and (key := _key()):
                self._files.keep(key, [text])
        except KernelError:
            pass


def _key() -> str:
    return proc.sysctl("kernel.random.boot_id") or ""
