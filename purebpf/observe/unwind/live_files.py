"""`LiveFiles`: the files with rules by inode, for processes whose mappings are not published yet.

The map of bpf_src/include/live_mappings.h.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Hashable, Mapping, MutableMapping
from typing import Any

from purebpf.errors import NotSupportedError
from purebpf.loader.rings.record_types import RecordMap
from purebpf.loader.types.task_offsets import mapping_offsets
from purebpf.observe.symbols.mapped_files import Identity
from purebpf.syscall import bpf
from purebpf.unwind.cfi_file import CfiFile

__all__ = ["LiveFiles", "tell_mappings"]

_MAP = "live_files"
_KEY = struct.Struct("<QII")
_CODE = struct.Struct("<QqIIQQQ")
_MINOR_BITS = 20
"""Of a device number in the kernel: MINORBITS of include/linux/kdev_t.h."""
_SECOND_NS = 1_000_000_000
_WORD = (1 << 64) - 1


class LiveFiles:
    """Publishes which file has which number, as long as the file is not written to.

    Args:
        maps: the object's maps, by name; objects without the map walk published processes only.
    """

    def __init__(self, maps: Mapping[str, RecordMap]) -> None:
        self._map = maps.get(_MAP)
        self._numbers: dict[bytes, int] = {}

    @property
    def is_used(self) -> bool:
        """True if the object has the map."""
        return self._map is not None

    def add(self, file: Hashable, cfi: CfiFile, number: int) -> None:
        """Publish a file with one piece of code.

        Others are left to the mappings that user space publishes.

        Raises:
            KernelError: the kernel refused an element.
        """
        code = cfi.only_code
        if self._map is None or not isinstance(file, Identity) or code is None:
            return
        if len(self._numbers) >= self._map.max_entries:
            return
        key = _key(file)
        seconds, rest_ns = divmod(file.mtime_ns, _SECOND_NS)
        shift = code.address - code.offset & _WORD
        first = code.offset & -mmap.PAGESIZE
        span = first, code.offset + code.file_size, shift
        bpf.map_update_elem(
            self._map.fileno(), key, _CODE.pack(file.size, seconds, rest_ns, number, *span)
        )
        self._numbers[key] = number

    def remove(self, file: Hashable, number: int) -> None:
        """Take a file out before its number is given to another one.

        Raises:
            KernelError: the kernel refused it.
        """
        if self._map is None or not isinstance(file, Identity):
            return
        key = _key(file)
        if self._numbers.get(key) == number:
            del self._numbers[key]
            bpf.map_delete_elem(self._map.fileno(), key)


def _key(file: Identity) -> bytes:
    device = os.major(file.device) << _MINOR_BITS | os.minor(file.device)
    return _KEY.pack(file.inode & _WORD, device, 0)


def tell_mappings(variables: MutableMapping[str, Any]) -> None:
    """Say where the kernel has the mappings of a process, to an object that looks them up."""
    if "page_shift" not in variables or not variables["finds_vma"]:
        return
    try:
        offsets = mapping_offsets()
    except NotSupportedError:
        return
    if offsets:
        for name, offset in offsets.items():
            variables[f"{name}_at"] = offset
        variables["page_shift"] = mmap.PAGESIZE.bit_length() - 1
