"""/proc/kallsyms: kernel addresses to names, without parsing the file.

One line a symbol: `ffffffff81000000 T _stext`, and behind a tab `[module]` for a module's symbol or
`[bpf]` for a BPF program. The kernel's own symbols come first, in address order (it bisects the
same table, get_symbol_pos in kernel/kallsyms.c), so they are searched as text: 17 comparisons a
look-up instead of 100 ms and 40 MB of objects for 120,000 lines. Only the later part (modules,
ftrace, kprobes, BPF) is unsorted and has to be indexed, when an address is not the kernel's.

An address with several names gets one by the rules for ELF symbols, see `elf_symbols`; upper case
letters are global, `W` is weak, and system calls go by the name for the machine's own ABI. The file
does not have sizes: a function ends at the next symbol, and the last one has at most 1 MiB.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from purebpf.late_pattern import compile_later
from purebpf.tuples import NamedTuple

__all__ = ["Kallsyms", "KernelSymbol", "addresses", "function_ranges"]

_TEXT = b"tTwW"
_COMPAT = tuple(
    prefix + name
    for prefix in (b"", b"__pfx_")
    for name in (b"__ia32_", b"__s390_", b"__arm64_compat_", b"__riscv_compat_")
)
"""Names of system calls of the 32-bit ABI. A call without arguments is one function for both ABIs
(SYSCALL_DEFINE0 in arch/x86/include/asm/syscall_wrapper.h): it goes by the native name."""
_ADDRESS = compile_later(rb"^[0-9a-f]+", re.MULTILINE)
_LONGEST = 1 << 20
_TOP = (1 << 64) - 1


class KernelSymbol(NamedTuple):
    """A function of the kernel: `module` is "" for the kernel itself, else as in the file."""

    start: int
    name: str
    module: str


class Kallsyms:
    """The text of /proc/kallsyms, ready to be searched.

    Attributes:
        hidden: the kernel shows zeros instead of addresses (kernel.kptr_restrict).
    """

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._width = max(text.find(b" "), 0)
        first_module = text.find(b"\t")
        self._core_end = len(text) if first_module < 0 else text.rfind(b"\n", 0, first_module) + 1
        last = text.rfind(b"\n", 0, max(self._core_end - 1, 0)) + 1
        self.hidden = not text[last : last + self._width].strip(b"0")
        self._addresses: array[int] | None = None  # of the lines behind the core, ascending
        self._offsets = array("I")  # and where those lines start

    @property
    def core(self) -> bytes:
        """The part of the text that has the kernel's own symbols."""
        return self._text[: self._core_end]

    def find(self, address: int) -> KernelSymbol | None:
        """The function an address is in, or None."""
        if self.hidden or address < 0:
            return None
        line, is_last = self._core_line(address)
        if line is not None and not is_last:
            return self._best(self._aliases(line))
        symbol = self._find_loaded(address)
        if symbol is None and line is not None:
            start = int(self._text[line : line + self._width], 16)
            symbol = self._best(self._aliases(line)) if address - start < _LONGEST else None
        return symbol

    def span(self, address: int) -> tuple[int, int] | None:
        """The addresses from one symbol of the kernel itself to the next, around an address."""
        line, is_last = (None, True) if self.hidden else self._core_line(address)
        if line is None or is_last:
            return None
        behind = self._line_end(line) + 1
        start, end = (self._text[at : at + self._width] for at in (line, behind))
        return int(start, 16), int(end, 16)

    def loaded_span(self, address: int) -> tuple[int, int] | None:
        """The addresses from one symbol behind the core to the next, as of a module's function.

        None: there is no symbol within 1 MiB, or none behind.
        """
        if self.hidden:
            return None
        if self._addresses is None:
            self._addresses = self._index_loaded()
        behind = bisect_right(self._addresses, address)
        if not behind or behind == len(self._addresses):
            return None
        start, end = self._addresses[behind - 1], self._addresses[behind]
        return None if address - start >= _LONGEST else (start, min(end, start + _LONGEST))

    def _core_line(self, address: int) -> tuple[int | None, bool]:
        """The last line of the core that is not above an address, and whether it is the last."""
        text, width = self._text, self._width
        wanted = b"%0*x" % (width, address)
        if len(wanted) > width or not self._core_end or text[:width] > wanted:
            return None, False
        low, high = 0, self._core_end  # lines: at low the address is not above, at high it is
        while True:
            half = (low + high) // 2
            middle = text.rfind(b"\n", low, half) + 1 or text.find(b"\n", half, high - 1) + 1
            if not middle:
                return low, high == self._core_end
            if text[middle : middle + width] <= wanted:
                low = middle
            else:
                high = middle

    def _aliases(self, line: int) -> list[int]:
        """The lines of one address, given the last of them."""
        text = self._text
        shown = text[line : line + self._width]
        lines = [line]
        while line:
            line = text.rfind(b"\n", 0, line - 1) + 1
            if text[line : line + self._width] != shown:
                break
            lines.append(line)
        return lines

    def _find_loaded(self, address: int) -> KernelSymbol | None:
        if self._addresses is None:
            self._addresses = self._index_loaded()
        behind = bisect_right(self._addresses, address)
        start = self._addresses[behind - 1] if behind else 0
        if not behind or address - start >= _LONGEST:
            return None
        return self._best(self._offsets[bisect_left(self._addresses, start) : behind])

    def _index_loaded(self) -> array[int]:
        matches = _ADDRESS.finditer(self._text, self._core_end)
        keys = sorted(int(line[0], 16) << 32 | line.start() for line in matches)
        self._offsets.extend(key & 0xFFFFFFFF for key in keys)
        return array("Q", (key >> 32 & _TOP for key in keys))

    def _best(self, lines: Sequence[int]) -> KernelSymbol | None:
        """The function that lines of one address name; None when all of them are data."""
        best: KernelSymbol | None = None
        best_rank: tuple[bool, bool, bool, int, int] | None = None
        for line in lines:
            address, kind, rest = self._text[line : self._line_end(line)].split(b" ", 2)
            if kind not in _TEXT:
                continue
            name, _, module = rest.partition(b"\t")
            underscores = len(name) - len(name.lstrip(b"_"))
            is_native = not name.startswith(_COMPAT)
            rank = (kind not in b"wW", kind.isupper(), is_native, -underscores, len(name))
            if best_rank is None or rank > best_rank:
                best_rank = rank
                best = KernelSymbol(int(address, 16), name.decode(), module.strip(b"[]").decode())
        return best

    def _line_end(self, line: int) -> int:
        end = self._text.find(b"\n", line)
        return end if end >= 0 else len(self._text)


def addresses(text: bytes, names: Iterable[str]) -> dict[str, set[int]]:
    """The addresses of symbols of any kind, by name; a symbol may have none, or several.

    A static variable that clang has renamed for linking, `name.llvm.123`, goes by its own name.
    """
    addresses_by_name: dict[str, set[int]] = {}
    for name in names:
        places = addresses_by_name.setdefault(name, set())
        wanted = b" %b" % name.encode("utf-8", "surrogateescape")
        at = text.find(wanted)
        while at >= 0:
            end, kind = at + len(wanted), text[at - 1 : at]
            is_whole = text[end : end + 1] in (b"\n", b"\t", b"")
            if is_whole or (kind == b"d" and text.startswith(b".llvm.", end)):
                start = text.rfind(b"\n", 0, at) + 1
                places.add(int(text[start : text.find(b" ", start)], 16))
            at = text.find(wanted, end)
    return addresses_by_name


def function_ranges(text: bytes, name: str) -> list[tuple[int, int]]:
    """The functions of that name: where each starts, and where the next symbol does.

    The last function of all ends after 1 MiB. Empty when there is none, or addresses are hidden.
    """
    starts = {
        int(symbol_line[1], 16)
        for symbol_line in re.finditer(
            rb"^([0-9a-f]+) [tTwW] %b(?:\t|$)" % re.escape(name.encode()), text, re.MULTILINE
        )
    } - {0}
    if not starts:
        return []
    known = sorted({int(symbol_line[0], 16) for symbol_line in _ADDRESS.finditer(text)})
    ranges = []
    for start in sorted(starts):
        behind = bisect_right(known, start)
        end = known[behind] if behind < len(known) else start + _LONGEST
        ranges.append((start, min(end, start + _LONGEST)))
    return ranges
