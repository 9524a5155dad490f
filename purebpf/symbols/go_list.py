"""Finds the goroutines of a stripped Go program by the code that adds one to the list.

runtime.allgadd (Go's src/runtime/proc.go) appends to runtime.allgs, a slice: the code addresses its
three words, pointer, length and capacity, relative to the instruction. No other three words in a
row are addressed there.
"""

from __future__ import annotations

import struct

from purebpf.symbols.elf_image import EM_X86_64, SHF_EXECINSTR, ElfImage
from purebpf.symbols.go_table import go_functions

__all__ = ["list_in_code"]

_ADDS = b"runtime.allgadd"
_LONGEST = 1 << 14
"""Bytes of the function; it has some 400."""
_RELATIVE, _IS_RELATIVE = 0xC7, 0x05
"""The bits of a ModRM byte that say: 32 bits follow, relative to the next instruction."""
_DISTANCE = struct.Struct("<i")
_WORD = 8


def list_in_code(image: ElfImage) -> int | None:
    """Return the virtual offset of runtime.allgs; None where the code does not tell.

    Raises:
        FormatError: a section is larger than is plausible.
    """
    if image.machine != EM_X86_64:
        return None
    code = next(((at, size) for at, size, name in go_functions(image) if name == _ADDS), None)
    if code is None:
        return None
    start, size = code
    text = next(
        (one for one in image.sections if _has_code(one.flags, one.address, one.size, start)), None
    )
    if text is None:
        return None
    raw = image.read(text.offset + start - text.address, min(size, _LONGEST))
    targets = {
        start + at + 5 + _DISTANCE.unpack_from(raw, at + 1)[0]
        for at in range(len(raw) - 4)
        if raw[at] & _RELATIVE == _IS_RELATIVE
    }
    slices = [at for at in targets if {at + _WORD, at + 2 * _WORD} <= targets and not at % _WORD]
    return slices[0] if len(slices) == 1 else None


def _has_code(flags: int, address: int, size: int, at: int) -> bool:
    return bool(flags & SHF_EXECINSTR) and 0 <= at - address < size
