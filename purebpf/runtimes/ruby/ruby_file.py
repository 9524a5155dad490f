"""Facts from the file of Ruby's interpreter: the version, and the places of its data.

Stripped files keep the symbols of functions that extensions call. The instructions of three small
ones lead to data without symbols: `rb_thread_current` to the execution context of a thread,
`rb_thread_main` to the first thread, `rb_id2str` to the names of methods.
"""

from __future__ import annotations

import re

from purebpf.late_pattern import compile_later
from purebpf.runtimes.file_symbols import find_symbols, name_places
from purebpf.symbols.code_range import CodeRange
from purebpf.symbols.elf_image import ElfImage
from purebpf.tuples import NamedTuple
from purebpf.unwind.elf_frames import read_address
from purebpf.unwind.machine import X86_64

__all__ = ["ContextPlace", "MainThread", "RubyFile", "calling_functions", "read_ruby_file"]

_VERSION, _LOOP = b"ruby_version", b"rb_vm_exec"
_CURRENT, _MAIN, _NAME = b"rb_thread_current", b"rb_thread_main", b"rb_id2str"
_SYMBOLS = b"ruby_global_symbols"
_WANTED = name_places((_VERSION, _CURRENT, _MAIN, _NAME, _LOOP, _SYMBOLS))
_SMALL = 48
_NAMES_CODE = 128
_RELEASE = compile_later(rb"(\d{1,3})\.(\d{1,3})[.\w-]{0,20}\0")
_CALL_TLS = compile_later(  # lea; call __tls_get_addr; mov (%rax),%rax
    rb"\x66?\x48\x8d\x3d(?P<got>....).{0,4}?\xe8....\x48\x8b"
    rb"(?:\x00|\x40(?P<byte>.)|\x80(?P<word>....))",
    re.DOTALL,
)
_STATIC_TLS = compile_later(rb"\x64\x48\x8b\x04\x25(?P<offset>....)", re.DOTALL)
_INITIAL_TLS = compile_later(rb"\x48\x8b\x05(?P<got>....)\x64\x48\x8b\x00", re.DOTALL)
_FIRST_THREAD = compile_later(  # of the machine; a test may come between
    rb"\x48(?P<kind>[\x8b\x8d])\x05(?P<at>....)(?P<loads>(?:\x48\x8b\x00)?)(?:\x48\x85\xc0[\x74\x75].)?"
    rb"\x48\x8b(?:\x40(?P<byte>.)|\x80(?P<word>....))",
    re.DOTALL,
)
_JUMP = compile_later(rb"\xe9(?P<to>....)", re.DOTALL)
_LAST_NAME = compile_later(
    rb"(?:\x39|\x3b)[\x05\x0d\x15\x1d\x25\x2d\x35\x3d](?P<at>....)", re.DOTALL
)
_NEAR = 1 << 18
"""Bytes between the function that executes instructions and the one that calls it: one file of C
has both."""
_CALL = 0xE8


class ContextPlace(NamedTuple):
    """The place of a thread's execution context.

    Attributes:
        got: the address of the entry of the linker that has it; 0: `offset` alone has it.
        is_block: whether the entry has the number of a module, and an offset in its block of
            thread-local data; or else the offset from the thread pointer.
        offset: to add.
    """

    got: int
    is_block: bool
    offset: int


class MainThread(NamedTuple):
    """The place of the first thread.

    Attributes:
        address: of a pointer, or of a pointer to one, which leads to the machine (`rb_vm_t`).
        loads: the number of pointers.
        offset: of the thread in the machine.
    """

    address: int
    loads: int
    offset: int


class RubyFile(NamedTuple):
    """Addresses in the file, as it is linked.

    Attributes:
        version: (3, 1).
        release: "3.1.2".
        context: None: it is not known.
        main: None: it is not known.
        symbols: the address of the names of methods; 0: it is not known.
        loop: the function that runs methods; () if it has no symbol.
    """

    version: tuple[int, int]
    release: str
    context: ContextPlace | None
    main: MainThread | None
    symbols: int
    loop: tuple[CodeRange, ...]


def read_ruby_file(image: ElfImage) -> RubyFile | None:
    """Read what a file says of its interpreter; None: it has none.

    Raises:
        FormatError: its headers contradict each other.
    """
    if not image.is64 or image.order != "<":
        return None
    found = {
        name: (address, size)
        for table in (".symtab", ".dynsym")
        for name, address, size in find_symbols(image, image.section(table), _WANTED)
    }
    if _VERSION not in found:
        return None
    version = _RELEASE.match(read_address(image, found[_VERSION][0], _SMALL))
    if version is None:
        return None
    numbers, release = (int(version[1]), int(version[2])), version[0].rstrip(b"\0").decode()
    if image.machine != X86_64.elf:  # of which no instructions are known here
        return RubyFile(numbers, release, None, None, 0, ())
    start, size = found.get(_LOOP, (0, 0))
    return RubyFile(
        numbers,
        release,
        _context(image, found.get(_CURRENT, (0, 0))[0]),
        _main(image, found.get(_MAIN, (0, 0))[0]),
        found.get(_SYMBOLS, (0, 0))[0] or _symbols(image, found.get(_NAME, (0, 0))[0]),
        (CodeRange(start, start + size),) if size else (),
    )


def calling_functions(image: ElfImage, start: int) -> list[int]:
    """Return the addresses of instructions near a function that call its start."""
    starts = [one.address for one in image.segments if one.address <= start]
    first = max(start - _NEAR, *starts, 0)
    code = read_address(image, first, start + _NEAR - first)
    places = []
    at = code.find(_CALL)
    while 0 <= at <= len(code) - 5:
        if first + at + 5 + _signed(code[at + 1 : at + 5]) == start:
            places.append(first + at)
        at = code.find(_CALL, at + 1)
    return places


def _context(image: ElfImage, function: int) -> ContextPlace | None:
    """Return where `rb_thread_current` finds the execution context."""
    code = read_address(image, function, _SMALL)
    if match := _CALL_TLS.search(code):
        got = function + match.end("got") + _signed(match["got"])
        return ContextPlace(got, True, _signed(match["byte"] or match["word"] or b""))
    if match := _STATIC_TLS.search(code):
        return ContextPlace(0, False, _signed(match["offset"]))
    if match := _INITIAL_TLS.search(code):
        return ContextPlace(function + match.end("got") + _signed(match["got"]), False, 0)
    return None


def _main(image: ElfImage, function: int) -> MainThread | None:
    """Return where `rb_thread_main` finds the first thread."""
    match = _FIRST_THREAD.search(read_address(image, function, _SMALL))
    if match is None:
        return None
    loads = (match["kind"] == b"\x8b") + len(match["loads"]) // 3
    at = function + match.end("at") + _signed(match["at"])
    return MainThread(at, loads, _signed(match["byte"] or match["word"] or b""))


def _symbols(image: ElfImage, function: int) -> int:
    """Return where `rb_id2str` finds names: the function that it jumps to compares a number with
    the last one, and loads the table 16 bytes behind that.
    """
    jump = _JUMP.search(read_address(image, function, _SMALL))
    for start in (function + jump.end() + _signed(jump["to"]) if jump else 0, function):
        code = read_address(image, start, _NAMES_CODE) if start else b""
        for match in _LAST_NAME.finditer(code):
            last = start + match.end() + _signed(match["at"])
            for at in range(match.end(), len(code) - 7):
                is_load = code[at : at + 2] == b"\x48\x8b" and code[at + 2] & 0xC7 == 5
                if is_load and start + at + 7 + _signed(code[at + 3 : at + 7]) == last + 16:
                    return last
    return 0


def _signed(raw: bytes) -> int:
    return int.from_bytes(raw, "little", signed=True)
