"""`find_loop`: the function that runs Ruby methods, in a file that has no symbol of it."""

from __future__ import annotations

from purebpf.observe.runtimes.loop_parts import whole_loop
from purebpf.runtimes.ruby.ruby_file import calling_functions
from purebpf.symbols.code_range import CodeRange
from purebpf.symbols.elf_image import ElfImage

__all__ = ["find_loop"]

_MOST_PARTS = 3


def find_loop(image: ElfImage, instruction: int) -> tuple[CodeRange, ...]:
    """Return the parts of the function; () if it is not found.

    Each call of C code into Ruby has one call of it, `vm_exec`, which calls the function that
    executes instructions unless the first method is compiled.

    Args:
        image: the file of the interpreter.
        instruction: an address in the function that executes instructions.
    """
    from purebpf.unwind.cfi_file import CfiFile  # with 14 modules

    cfi = CfiFile(image)
    core = cfi.function(instruction)
    if core is None:
        return ()
    found = {cfi.function(at) for at in calling_functions(image, core.start)}
    parts = sorted(CodeRange(*each) for each in found if each is not None and each != core)
    if not 0 < len(parts) <= _MOST_PARTS:
        parts = [CodeRange(*core)]
    return tuple(whole_loop(image, parts))
