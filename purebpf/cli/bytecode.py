"""Imports the modules of a command from their bytecode files, without searching folders.

The import system lists each folder, asks for the kind of each file, and computes each path twice:
90 us for a module, of which a command has 300. `BytecodeFinder` opens the bytecode file at its
usual place and checks it as the import system does. It leaves all other modules to the import
system: the ones without a bytecode file, with an old one, or with one that is checked by a hash.
"""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import MAGIC_NUMBER
from types import CodeType, ModuleType

__all__ = ["BytecodeFinder", "install"]

_CHECKED_BY_TIME = MAGIC_NUMBER + bytes(4)
"""How a bytecode file begins; its source's time and size follow, u32 each (PEP 552)."""
_HEADER = 16
_U32 = 0xFFFF_FFFF


class _Loader(SourceFileLoader):
    """The loader of a module whose code has been read."""

    def __init__(self, name: str, path: str, code: CodeType) -> None:
        super().__init__(name, path)
        self._code: CodeType | None = code

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the code that was read, once: who asks again (reload) gets the present one."""
        code, self._code = self._code, None
        return code or super().get_code(fullname)


class BytecodeFinder:
    """A finder for `sys.meta_path`.

    Args:
        package: finds the modules in this package.
    """

    def __init__(self, package: str) -> None:
        self._prefix = f"{package}."
        self._suffix = f".{sys.implementation.cache_tag}.pyc"

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module with usable bytecode; None: another finder is asked.

        Args:
            fullname: the module.
            path: the folders of its package; None: it is in none.
        """
        if path is None or len(path) != 1 or not fullname.startswith(self._prefix):
            return None
        (folder,) = path
        name = fullname.rpartition(".")[2]
        return self._find(fullname, folder, name) or self._find(
            fullname, f"{folder}/{name}", "__init__"
        )

    def _find(self, fullname: str, folder: str, name: str) -> ModuleSpec | None:
        source = f"{folder}/{name}.py"
        cached = f"{folder}/__pycache__/{name}{self._suffix}"
        if (code := _read_code(cached, source)) is None:
            return None
        spec = ModuleSpec(fullname, _Loader(fullname, source, code), origin=source)
        if name == "__init__":
            spec.submodule_search_locations = [folder]
        spec.has_location = True
        spec.cached = cached
        return spec


def _read_code(cached: str, source: str) -> CodeType | None:
    """Return the code in a bytecode file; None: there is none, or none of this source."""
    try:
        fd = os.open(cached, os.O_RDONLY | os.O_CLOEXEC)
        try:
            status = os.stat(source)
            data = os.read(fd, os.fstat(fd).st_size)
        finally:
            os.close(fd)
    except OSError:
        return None
    numbers = (int(status.st_mtime) & _U32, status.st_size & _U32)
    header = _CHECKED_BY_TIME + b"".join(number.to_bytes(4, "little") for number in numbers)
    if not data.startswith(header):
        return None
    try:
        code = marshal.loads(memoryview(data)[_HEADER:])  # noqa: S302 - as the import system does
    except (EOFError, TypeError, ValueError):  # the import system says so
        return None
    return code if isinstance(code, CodeType) else None


def install() -> None:
    """Let this process import purebpf's modules this way.

    Nothing changes where this package itself came from elsewhere (a zip file, a frozen program), or
    where bytecode has another name (`python -O`) or folder (PYTHONPYCACHEPREFIX).
    """
    spec = __spec__
    assert spec is not None
    is_usual = type(spec.loader) is SourceFileLoader and spec.cached is not None
    if is_usual and not sys.flags.optimize and sys.pycache_prefix is None:
        sys.meta_path.insert(0, BytecodeFinder(__name__.partition(".")[0]))
