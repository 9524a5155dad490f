"""`Container`: the sections, symbols and relocations of an ELF file that is being written."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from purebpf.elf.container import STB_LOCAL
from purebpf.tuples import NamedTuple
from purebpf.wire import formats

__all__ = ["Container", "Symbol"]

_IDENT = b"\x7fELF\x02"
_VERSION = 1
_RELOCATABLE, _BPF = 1, 247
_PROGBITS, _SYMTAB, _STRTAB, _NOBITS, _REL = 1, 2, 3, 8, 9
_WRITE, _ALLOC, _EXECUTE = 1, 2, 4
_HEADER_SIZE, _SECTION_SIZE, _SYMBOL_SIZE, _RELOCATION_SIZE = 64, 64, 24, 16
_R_BPF_64_64, _R_BPF_64_32 = 1, 10
_ALIGNMENT = 8
_TYPES = (".BTF", ".BTF.ext")


class Symbol(NamedTuple):
    """A symbol of a section; of section "" if another object, or the kernel, defines it."""

    name: str
    section: str
    type: int
    binding: int = STB_LOCAL
    value: int = 0
    size: int = 0

    @property
    def is_local(self) -> bool:
        """True if other objects cannot see it."""
        return self.binding == STB_LOCAL


class _Section:
    """A section."""

    def __init__(self, name: str, kind: int, flags: int, data: bytes, entry_size: int = 0) -> None:
        self.name = name
        self.kind = kind
        self.flags = flags
        self.data = data
        self.entry_size = entry_size
        self.link = self.info = 0


class _Strings:
    """A section of names."""

    def __init__(self) -> None:
        self.data = bytearray(1)
        self._offsets = {"": 0}

    def add(self, text: str) -> int:
        """Return the offset of a name."""
        if text not in self._offsets:
            self._offsets[text] = len(self.data)
            self.data += text.encode() + b"\0"
        return self._offsets[text]


class Container:
    """A relocatable file of BPF code."""

    def __init__(self, byteorder: str) -> None:
        self._prefix = "<" if byteorder == "little" else ">"
        self._sections: list[_Section] = [_Section("", 0, 0, b"")]
        self._numbers: dict[str, int] = {"": 0}
        self._symbols: list[Symbol] = []
        self._relocations: list[tuple[str, list[tuple[int, Symbol, bool]]]] = []

    def add_section(
        self,
        name: str,
        data: bytes,
        *,
        executable: bool = False,
        writable: bool = False,
        no_bits: bool = False,
    ) -> None:
        """Append a section."""
        flags = 0 if name in _TYPES else _ALLOC
        flags |= _EXECUTE * executable | _WRITE * writable
        self._append(_Section(name, _NOBITS if no_bits else _PROGBITS, flags, data))

    def _append(self, section: _Section) -> None:
        self._numbers[section.name] = len(self._sections)
        self._sections.append(section)

    def add_symbol(self, symbol: Symbol) -> Symbol:
        """Append a symbol, and return it."""
        self._symbols.append(symbol)
        return symbol

    def relocate(self, section: str, relocations: Iterable[tuple[int, Symbol, bool]]) -> None:
        """Add the relocations of a section: the place, the symbol, and True for a call."""
        self._relocations.append((section, list(relocations)))

    def finish(self) -> bytes:
        """Return the bytes of the file."""
        strings = _Strings()
        ordered = sorted(self._symbols, key=lambda symbol: not symbol.is_local)
        numbers = {id(symbol): index for index, symbol in enumerate(ordered, 1)}
        table = bytearray(_SYMBOL_SIZE)
        for symbol in ordered:
            table += struct.pack(
                self._prefix + formats.ELF64_SYMBOL,
                *(
                    strings.add(symbol.name),
                    symbol.binding << 4 | symbol.type,
                    0,
                    self._numbers[symbol.section],
                ),
                *(symbol.value, symbol.size),
            )
        symbols = _Section(".symtab", _SYMTAB, 0, bytes(table), _SYMBOL_SIZE)
        symbols.info = 1 + sum(symbol.is_local for symbol in ordered)
        self._append(symbols)
        for name, relocations in self._relocations:
            self._add_relocations(name, relocations, numbers)
        for section in self._sections:
            strings.add(section.name)
        strings.add(".strtab")
        self._append(_Section(".strtab", _STRTAB, 0, bytes(strings.data)))
        symbols.link = self._numbers[".strtab"]
        return self._lay_out(strings)

    def _add_relocations(
        self, name: str, relocations: list[tuple[int, Symbol, bool]], numbers: dict[int, int]
    ) -> None:
        if not relocations:
            return
        data = b"".join(
            struct.pack(
                self._prefix + "QQ",
                place,
                numbers[id(symbol)] << 32 | (_R_BPF_64_32 if is_call else _R_BPF_64_64),
            )
            for place, symbol, is_call in relocations
        )
        section = _Section(f".rel{name}", _REL, 0, data, _RELOCATION_SIZE)
        section.link, section.info = self._numbers[".symtab"], self._numbers[name]
        self._append(section)

    def _lay_out(self, strings: _Strings) -> bytes:
        body, headers = bytearray(_HEADER_SIZE), bytearray()
        for section in self._sections:
            body += bytes(-len(body) % _ALIGNMENT)
            headers += struct.pack(
                self._prefix + formats.ELF64_SECTION,
                *(strings.add(section.name), section.kind, section.flags, 0, len(body)),
                *(len(section.data), section.link, section.info),
                *(_ALIGNMENT if section.kind else 0, section.entry_size),
            )
            if section.kind != _NOBITS:
                body += section.data
        body += bytes(-len(body) % _ALIGNMENT)
        header = struct.pack(
            self._prefix + formats.ELF64_HEADER,
            *(_RELOCATABLE, _BPF, _VERSION, 0, 0, len(body), 0, _HEADER_SIZE, 0, 0),
            *(_SECTION_SIZE, len(self._sections), self._numbers[".strtab"]),
        )
        ident = _IDENT + bytes((1 if self._prefix == "<" else 2, _VERSION)) + bytes(9)
        body[:_HEADER_SIZE] = ident + header
        return bytes(body + headers)
