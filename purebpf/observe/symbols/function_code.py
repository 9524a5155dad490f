"""The functions of a file as code: where each ends, by call frame information or by symbols."""

from __future__ import annotations

from functools import cached_property

from purebpf.symbols.code_range import CodeRange
from purebpf.symbols.elf_image import EM_X86_64, PF_X, PT_LOAD, ElfImage, Segment
from purebpf.symbols.elf_names import Extent, function_extents
from purebpf.symbols.function_exits import Exits, find_exits
from purebpf.symbols.plt import Stub, plt_stubs
from purebpf.symbols.x86_64_code import CodeError, Flow, decode
from purebpf.unwind.cfi_file import CfiFile

__all__ = ["FunctionCode"]

_RSP = 7
"""Its number in call frame information."""
_WORD = 8
_LONGEST_INSTRUCTION = 15
_COLD = ".cold"


class FunctionCode:
    """The code of one file; a `purebpf.symbols.function_exits.FileCode`.

    Args:
        image: its headers.
        follows_stubs: a function that the file calls through its PLT, and has itself, counts as one
            of the file; another file may take its place (as with LD_PRELOAD).
    """

    def __init__(self, image: ElfImage, *, follows_stubs: bool = False) -> None:
        self._image = image
        self._follows_stubs = follows_stubs
        self._cfi = CfiFile(image)

    def exits(self, offset: int) -> Exits:
        """The exits of the function that starts at an offset of the file, as offsets in it.

        Raises:
            CodeError: they are not known; says why.
        """
        image = self._image
        if image.machine != EM_X86_64 or not image.is64:
            raise CodeError("its machine code is not that of x86-64")
        distance = self._distance(offset)
        found = find_exits(self, offset + distance)
        return Exits(
            tuple(self._offset(at) for at in found.returns),
            tuple((self._offset(at), condition) for at, condition in found.leaving),
            tuple((self._offset(at), condition) for at, condition in found.jumps),
            tuple(self._offset(at) for at in found.entered),
        )

    def code(self, address: int, size: int) -> bytes:
        """Bytes of code; fewer at the end of a segment."""
        return self._cfi.code(address, size)

    def check(self) -> object:
        """Raise if the work on the file has taken too long (`purebpf.symbols.budget`)."""
        return self._image.check()

    def range_of(self, address: int) -> CodeRange | None:
        """The function, or part of one, that has an address; None: it is not known."""
        fde = self._cfi.fde(address)
        if fde is not None:
            return CodeRange(fde.start, fde.end)
        extent = self._extents.get(address)
        return None if extent is None else CodeRange(address, address + extent.size)

    def is_part(self, address: int) -> bool:
        """Return True for a cold part: it is named so, or starts with more on the stack."""
        if self.is_entry_like(address) is False:
            return True
        return any(_COLD in name for name in self.names(address))

    def is_entry_like(self, address: int) -> bool | None:
        """Return True if the stack at an address is as at a function's entry; None: not known."""
        row = self._cfi.row(address)
        return None if row is None else (row.cfa_register, row.cfa) == (_RSP, _WORD)

    def names(self, address: int) -> tuple[str, ...]:
        """The symbols at an address."""
        extent = self._extents.get(address)
        return () if extent is None else extent.names

    def behind_stub(self, address: int) -> int:
        """Return the function of this file that an entry of its PLT leads to; 0: none."""
        stub = self._stubs.get(address) if self._follows_stubs else None
        return stub.function if stub is not None else 0

    def jumps_to(self, offset: int, name: str) -> bool:
        """Return True if a jump at an offset leads to a function of a name through the PLT."""
        address = offset + self._distance(offset)
        code = self.code(address, _LONGEST_INSTRUCTION)
        jump = decode(code, 0)
        stub = self._stubs.get(address + jump.target)
        if jump.flow not in (Flow.JUMP, Flow.CONDITIONAL) or stub is None:
            return False
        return stub.name == name.encode() or name in self.names(stub.resolver)

    @cached_property
    def _stubs(self) -> dict[int, Stub]:
        return {start: stub for start, _, stub in plt_stubs(self._image)}

    @cached_property
    def _extents(self) -> dict[int, Extent]:
        return function_extents(self._image)

    def _distance(self, offset: int) -> int:
        for segment in self._image.segments:
            if _is_code(segment) and 0 <= offset - segment.offset < segment.file_size:
                return segment.address - segment.offset
        raise CodeError("it is not in a segment of code")

    def _offset(self, address: int) -> int:
        for segment in self._image.segments:
            if _is_code(segment) and 0 <= address - segment.address < segment.file_size:
                return address - segment.address + segment.offset
        raise CodeError(f"the code at {address:#x} is not in the file")


def _is_code(segment: Segment) -> bool:
    return segment.type == PT_LOAD and bool(segment.flags & PF_X)
