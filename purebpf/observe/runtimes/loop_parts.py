"""`whole_loop`: the parts of an interpreter's loop, with the one that a compiler split off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from purebpf.runtimes.loop_code import cold_part
from purebpf.symbols.code_range import CodeRange
from purebpf.symbols.elf_image import ElfImage
from purebpf.unwind.machine import X86_64

__all__ = ["whole_loop"]


def whole_loop(image: ElfImage, loop: Sequence[CodeRange]) -> Iterator[CodeRange]:
    """Yield the parts of a loop.

    Args:
        image: the file of the interpreter.
        loop: the parts that have symbols.
    """
    yield from loop
    if len(loop) == 1 and image.machine == X86_64.elf:
        from purebpf.unwind.cfi_file import CfiFile  # with 14 modules, not before there is a loop

        cfi = CfiFile(image)
        hot = loop[0]
        cold = cold_part(cfi.code(hot.start, hot.end - hot.start), hot, cfi.function)
        if cold is not None:
            yield cold
