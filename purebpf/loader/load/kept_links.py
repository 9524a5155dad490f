"""Answers of the kernel's types for one object, from earlier loads: purebpf/links of the user's
caches.

A load asks two questions: what CO-RE writes into the code of a function, and the ids of attach
targets. The answers follow from the object and from vmlinux's types, so they are stored under the
build id of the kernel, beside the object's own types and code, which a reader compares. Without
them, a load reads 2.4 MB of names and matches the object's types, 8 ms. Who may write such a file:
see `CacheFiles`.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from purebpf._version import __version__
from purebpf.files.cache_files import CacheFiles, cache_home
from purebpf.loader.host.kernel_build_id import kernel_build_id
from purebpf.relocate.linked_program import Patched

if TYPE_CHECKING:
    from purebpf.spec import FunctionSpec, ObjectSpec

__all__ = ["KeptLinks"]

_LIMIT = 8 << 20
"""Bytes of all files."""
_LARGEST = 1 << 20
_FORMAT = "purebpf links 1"
_U32 = struct.Struct("<I")
_U32_MASK = 0xFFFF_FFFF
_DECIDES = ("btf/core", "btf/types", "relocate")
"""Folders of the code that finds the answers: other code may find others."""


class KeptLinks:
    """The answers for one object on the running kernel; `save` adds the new ones to its file.

    Args:
        spec: the object.
    """

    def __init__(self, spec: ObjectSpec) -> None:
        types = b"" if spec.btf is None else bytes(spec.btf.data)
        own_code = _own_code()
        numbers = tuple(int(word) for word in own_code.split() if word.isdigit())
        build_id = kernel_build_id()
        is_plain = spec.name.isidentifier() and spec.name.isascii()
        is_kept = build_id and is_plain and types
        # two checkouts have files of their own; `_read` compares all that decides the answers
        code = f"{hash(numbers) & _U32_MASK:08x}"
        self._key = f"{build_id.hex()}-{code}-{spec.name}" if is_kept else ""
        self._about = [*map(str.encode, (_FORMAT, __version__, spec.byteorder)), own_code, types]
        self._is_new = False
        self._type_ids: dict[str, int] = {}
        self._patched: dict[tuple[bytes, bytes], Patched] = {}
        if self._key:
            self._read()

    def patched(self, function: FunctionSpec) -> Patched | None:
        """Return a function's code after CO-RE; None: it is not known."""
        return self._patched.get(_question(function))

    def add_patched(self, function: FunctionSpec, patched: Patched) -> None:
        """Note the result for a function."""
        self._patched[_question(function)] = patched
        self._is_new = True

    def type_id(self, kind: int, name: str) -> int:
        """Return the id of vmlinux's type of a kind and name; 0: it is not known."""
        return self._type_ids.get(f"{kind} {name}", 0)

    def add_type_id(self, kind: int, name: str, type_id: int) -> None:
        """Note the id of a type of vmlinux."""
        self._type_ids[f"{kind} {name}"] = type_id
        self._is_new = True

    def save(self) -> None:
        """Write the answers for other runs, if there are new ones; nothing raises."""
        if not (self._key and self._is_new):
            return
        ids = "".join(f"{question} {number}\n" for question, number in self._type_ids.items())
        parts = [*self._about, _encode(ids)]
        for (code, relocations), (patched, poisoned) in self._patched.items():
            reasons = "".join(f"{slot} {why}\n" for slot, why in poisoned.items())
            parts += (code, relocations, patched, _encode(reasons))
        packed = b"".join(_U32.pack(len(part)) + part for part in parts)
        if len(packed) <= _LARGEST:
            _files().keep(self._key, [packed])
        self._is_new = False

    def _read(self) -> None:
        """Take in the file; one that is damaged, or of another object, has no answers."""
        try:
            reader = _files().open(self._key)
            if reader.size > _LARGEST:
                return
            parts = [*_parts(reader(0, reader.size))]
            about, (ids, *rest) = parts[: len(self._about)], parts[len(self._about) :]
            if about != self._about or len(rest) % 4:
                return
            type_ids = dict(line.rsplit(" ", 1) for line in _lines(ids))
            numbers = {question: int(number) for question, number in type_ids.items()}
            patched = dict(_functions(rest))
        except (OSError, ValueError, struct.error):
            return
        self._type_ids, self._patched = numbers, patched


def _functions(parts: Sequence[bytes]) -> Iterator[tuple[tuple[bytes, bytes], Patched]]:
    """Yield the questions and answers of functions.

    Raises:
        ValueError: they are damaged.
    """
    for code, relocations, patched, reasons in zip(*(parts[at::4] for at in range(4)), strict=True):
        if len(code) != len(patched):
            raise ValueError("code of another length")
        lines = (line.split(" ", 1) for line in _lines(reasons))
        poisoned = {int(slot): why for slot, why in lines}
        yield (code, relocations), Patched(patched, poisoned)


def _question(function: FunctionSpec) -> tuple[bytes, bytes]:
    return function.code, repr([tuple(each) for each in function.core_relocations]).encode()


def _encode(text: str) -> bytes:
    """Return lines with names of an object, which may be any bytes."""
    return text.encode(errors="surrogateescape")


def _lines(encoded: bytes) -> list[str]:
    """Return lines that `_encode` has encoded. Raises: ValueError: they are damaged."""
    return encoded.decode(errors="surrogateescape").split("\n")[:-1]


def _parts(packed: bytes) -> Iterator[bytes]:
    """Yield the parts of a file. Raises: ValueError, struct.error: it is damaged."""
    at = 0
    while at < len(packed):
        (size,) = _U32.unpack_from(packed, at)
        at += _U32.size
        part = packed[at : at + size]
        if len(part) != size:
            raise ValueError("it ends in the middle of a part")
        at += size
        yield part


def _own_code() -> bytes:
    """Return the times and sizes of the files that decide the answers; none in a zip file."""
    root = __file__.rpartition("/loader/")[0]
    lines = []
    for folder in _DECIDES:
        try:
            with os.scandir(f"{root}/{folder}") as entries:
                files = [(each.name, each.stat()) for each in entries if each.name.endswith(".py")]
        except OSError:
            continue
        lines += [f"{name} {status.st_mtime_ns} {status.st_size}" for name, status in sorted(files)]
    return "\n".join(lines).encode()


def _files() -> CacheFiles:
    return CacheFiles(os.path.join(cache_home(), "purebpf", "links"), _LIMIT)
