"""ELF objects put together byte by byte, for what clang would not write."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

PROGBITS, SYMTAB, STRTAB, RELA, NOBITS, REL = 1, 2, 3, 4, 8, 9
EXECUTABLE = 6  # SHF_ALLOC | SHF_EXECINSTR
NOTYPE, OBJECT, FUNC, SECTION = 0, 1, 2, 3
LOCAL, GLOBAL, WEAK = 0, 1, 2

EXIT = bytes.fromhex("b7000000000000009500000000000000")  # r0 = 0; exit
CALL = bytes.fromhex("85100000ffffffff")
LOAD = bytes.fromhex("18010000000000000000000000000000")


@dataclass
class ElfBuilder:
    """Sections and symbols by name; `build()` gives the bytes. `order` is "<" or ">"."""

    order: str = "<"
    machine: int = 247
    _sections: list[dict[str, object]] = field(default_factory=list)
    _symbols: list[tuple[str, int, int, int, int, int, int]] = field(default_factory=list)

    def section(
        self,
        name: str,
        contents: bytes = b"",
        *,
        kind: int = PROGBITS,
        flags: int = 0,
        info: int = 0,
        entsize: int = 0,
        size: int | None = None,
    ) -> int:
        """Add a section; its number. Two are reserved: 1 for symbols, 2 for strings."""
        self._sections.append(
            {
                "name": name,
                "contents": contents,
                "type": kind,
                "flags": flags,
                "info": info,
                "entsize": entsize,
                "size": len(contents) if size is None else size,
            }
        )
        return len(self._sections) + 2

    def symbol(
        self,
        name: str,
        section: int,
        value: int = 0,
        size: int = 0,
        *,
        kind: int = FUNC,
        binding: int = GLOBAL,
        visibility: int = 0,
    ) -> int:
        """Add a symbol; its number."""
        self._symbols.append((name, section, value, size, kind, binding, visibility))
        return len(self._symbols)

    def relocate(
        self, section: int, *entries: tuple[int, int, int], addends: tuple[int, ...] = ()
    ) -> None:
        """Add relocations (offset, type, symbol) of a section: SHT_RELA when there are addends."""
        rows = [
            struct.pack(self.order + "QQ", offset, symbol << 32 | type_)
            for offset, type_, symbol in entries
        ]
        if addends:
            rows = [
                row + struct.pack(self.order + "q", a) for row, a in zip(rows, addends, strict=True)
            ]
        name = ".rela" if addends else ".rel"
        self.section(
            f"{name}{section}",
            b"".join(rows),
            kind=RELA if addends else REL,
            info=section,
            entsize=24 if addends else 16,
        )

    def program(self, name: str = "main", section: str = "socket", code: bytes = EXIT) -> int:
        """Add a section with one global function; the section's number."""
        number = self.section(section, code, flags=EXECUTABLE)
        self.symbol(name, number, 0, len(code))
        return number

    def build(self) -> bytes:
        strings = bytearray(b"\0")

        def string(text: str) -> int:
            strings.extend(text.encode() + b"\0")
            return len(strings) - len(text.encode()) - 1

        symbols = bytes(24) + b"".join(
            struct.pack(
                self.order + "IBBHQQ",
                string(name),
                binding << 4 | type_,
                visibility,
                section,
                value,
                size,
            )
            for name, section, value, size, type_, binding, visibility in self._symbols
        )
        table = {"type": SYMTAB, "flags": 0, "info": 1, "entsize": 24, "link": 2}
        head = [
            {"name": ".symtab", "contents": symbols, "size": len(symbols), **table},
            {"name": ".strtab", "contents": b"", "type": STRTAB, "flags": 0, "info": 0},
        ]
        rows = [*head, *self._sections]
        offsets = [string(str(row["name"])) for row in rows]
        rows[1] |= {"contents": bytes(strings), "size": len(strings), "entsize": 0}
        body = b""
        headers = bytes(64)
        for name, row in zip(offsets, rows, strict=True):
            contents = row["contents"]
            assert isinstance(contents, bytes)
            headers += struct.pack(
                self.order + "IIQQQQIIQQ",
                *(name, row["type"], row["flags"], 0, 64 + len(body), row["size"]),
                *(row.get("link", 0), row["info"], 8, row["entsize"]),
            )
            body += contents + bytes(-len(contents) % 8)
        ident = b"\x7fELF" + bytes([2, 1 if self.order == "<" else 2, 1]) + bytes(9)
        header = struct.pack(
            self.order + "HHIQQQIHHHHHH",
            *(1, self.machine, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, len(rows) + 1, 2),
        )
        return ident + header + body + headers
