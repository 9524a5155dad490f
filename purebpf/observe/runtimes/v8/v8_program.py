"""Reads about V8 from the program or library of a process: constants, and where builtins are.

The builtins are code without call frame information, by far the largest piece of it in the file.
"""

from __future__ import annotations

import operator
import os
import struct
from collections.abc import Collection

from purebpf.observe.symbols.mapped_files import Identity, open_mapped
from purebpf.runtimes.v8.layout import CONSTANTS, V8Layout, V8LayoutError, read_layout
from purebpf.symbols.elf_image import PT_LOAD, ElfImage, Section
from purebpf.symbols.proc_maps import Mapping
from purebpf.tuples import NamedTuple
from purebpf.unwind.cfi_file import CfiFile, Function
from purebpf.unwind.elf_frames import eh_frame, read_address

__all__ = ["V8Program", "describe", "read_constants", "read_program"]

_SYMBOL = struct.Struct("<IBBHQQ")
_MOST_SYMBOLS = 1 << 20
_FRAME_KIND = "frametype_"
_SIZES = "_ZN2v88internal11interpreter9Bytecodes14kBytecodeSizesE"
_VERSION = ("_ZN2v88internal7Version6major_E", "_ZN2v88internal7Version6minor_E")
_MOST_SIZES = 3 * 256
_LEAST_BUILTINS = 1 << 18
"""Bytes: the builtins of all versions have more than 1 MB."""
_INT = 4
_MOST_KNOWN = 8
_known: dict[tuple[Identity, int], V8Program] = {}


class V8Program(NamedTuple):
    """A file with V8.

    Attributes:
        layout: of its objects.
        kinds: the names of V8's own frames.
        sizes: the bytes of each bytecode; b"": not known.
        builtins: the bytes of the file in which they are.
    """

    layout: V8Layout
    kinds: dict[int, str]
    sizes: bytes
    builtins: Function


def read_program(mapped: Mapping, pid: int) -> V8Program:
    """Read a mapped file with V8; each file once.

    Args:
        mapped: an executable mapping.
        pid: its process.

    Raises:
        V8LayoutError: it has no V8, or one that is not read.
        FormatError: it is no ELF file.
        OSError: it cannot be opened.
    """
    fd = open_mapped(mapped, (pid,))
    try:
        status = os.fstat(fd)
        key = Identity.of(status), mapped.file.inode
        if key not in _known:
            path = mapped.file.path
            image = ElfImage(lambda at, size: os.pread(fd, size, at), status.st_size, path)
            program = describe(image)
            if len(_known) >= _MOST_KNOWN:
                _known.clear()
            _known[key] = program
        return _known[key]
    finally:
        os.close(fd)


def describe(image: ElfImage) -> V8Program:
    """Read what a file says of its V8.

    Raises:
        V8LayoutError, FormatError: as `read_program`.
    """
    constants, words, sizes = read_constants(image)
    if not constants or len(words) < len(_VERSION):
        raise V8LayoutError(f"{image.source} does not describe its V8")
    layout = read_layout((words[0], words[1]), constants)
    kinds = {
        value: name.removeprefix(_FRAME_KIND)
        for name, value in constants.items()
        if name.startswith(_FRAME_KIND)
    }
    return V8Program(layout, kinds, sizes, _find_builtins(image))


def read_constants(image: ElfImage) -> tuple[dict[str, int], list[int], bytes]:
    """The constants of a file by name, its version, and the bytes of its bytecodes."""
    addresses: dict[str, tuple[int, int]] = {}
    for name in (".dynsym", ".symtab"):
        section = image.section(name)
        if section is not None and section.size <= _MOST_SYMBOLS * _SYMBOL.size:
            wanted = (CONSTANTS, *_VERSION, _SIZES) if not addresses else (_SIZES,)
            addresses = {**_symbols(image, section, wanted), **addresses}
        if _SIZES in addresses:
            break
    size_at, size = addresses.pop(_SIZES, (0, 0))
    sizes = read_address(image, size_at, size) if 0 < size <= _MOST_SIZES else b""
    values = {name: _integer(image, at) for name, (at, _) in addresses.items()}
    version = [values.pop(name) for name in _VERSION if name in values]
    constants = {name.removeprefix(CONSTANTS): value for name, value in values.items()}
    return constants, version, sizes


def _integer(image: ElfImage, address: int) -> int:
    return int.from_bytes(read_address(image, address, _INT), "little", signed=True)


def _symbols(
    image: ElfImage, table: Section, wanted: Collection[str]
) -> dict[str, tuple[int, int]]:
    """Addresses and sizes of the symbols whose names begin with one of these."""
    strings = image.contents(image.linked_section(table))
    names = {}
    for prefix in wanted:
        text = b"\0" + prefix.encode()
        at = strings.find(text)
        while at >= 0:
            end = strings.find(b"\0", at + 1)
            name = strings[at + 1 : end].decode("ascii", "replace")
            if prefix in (CONSTANTS, name):
                names[at + 1] = name
            at = strings.find(text, at + 1)
    raw = image.contents(table)
    found = {}
    whole = raw[: len(raw) // _SYMBOL.size * _SYMBOL.size]
    offsets = (
        memoryview(whole).cast("I")[:: _SYMBOL.size // 4].tolist()
    )  # of names, which come first
    for row in [row for row, at in enumerate(offsets) if at in names]:
        at, _, _, section, address, size = _SYMBOL.unpack_from(whole, row * _SYMBOL.size)
        if section:
            found[names[at]] = address, size
    return found


def _find_builtins(image: ElfImage) -> Function:
    """The largest piece of code without call frame information."""
    frames = eh_frame(image)
    if frames is None or frames.table is None:
        raise V8LayoutError(f"{image.source} has no table of its functions")
    table = frames.table
    ends = table.starts[1:]
    sizes = [*map(operator.sub, ends, table.starts)]
    largest = ends[len(sizes) - 1 - sizes[::-1].index(max(sizes))] if sizes else 0
    gap = CfiFile(image).gap(largest + table.base - 1)
    for segment in image.segments:
        inside = gap.start - segment.address
        if segment.type == PT_LOAD and 0 <= inside < segment.file_size:
            size = min(gap.end - gap.start, segment.file_size - inside)
            if size >= _LEAST_BUILTINS:
                return Function(segment.offset + inside, segment.offset + inside + size)
    raise V8LayoutError(f"{image.source}: its builtins are not found")
