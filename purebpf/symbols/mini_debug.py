"""The symbols that Fedora packs into stripped files: .gnu_debugdata, "MiniDebugInfo"."""

from __future__ import annotations

from purebpf.errors import FormatError
from purebpf.symbols.elf_image import ElfImage

__all__ = ["mini_debug_info"]

_MAX_DEBUG_DATA = 1 << 26  # bytes, unpacked
_MAX_UNPACKER = 1 << 27  # bytes of memory that unpacking may take: xz -9 takes 65 MiB


def mini_debug_info(image: ElfImage) -> ElfImage | None:
    """Return the ELF file with the rest of the symbols, None if there is none.

    Raises:
        FormatError: it is malformed.
    """
    packed = image.contents(image.section(".gnu_debugdata"))
    if not packed:
        return None
    import lzma

    where = f"{image.source} .gnu_debugdata"
    try:
        data = lzma.LZMADecompressor(memlimit=_MAX_UNPACKER).decompress(packed, _MAX_DEBUG_DATA)
    except lzma.LZMAError as error:
        raise FormatError(image.source, ".gnu_debugdata", str(error)) from None
    return ElfImage.of_bytes(data, where)
