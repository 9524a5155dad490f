"""`explain_bounds`: places in functions where a breakpoint may harm the program."""

from __future__ import annotations

from purebpf.errors import PurebpfError
from purebpf.loader.attach._common.probe_place import find_file, open_image, parse_place
from purebpf.script.point import Danger
from purebpf.symbols.elf_image import EM_X86_64
from purebpf.symbols.elf_names import FUNCTIONS, function_ranges, functions_named
from purebpf.symbols.x86_64_code import CodeError, decode

__all__ = ["explain_bounds"]

_MOST_CODE = 1 << 20
_LONGEST = 15
"""The most bytes of an instruction."""


def explain_bounds(place: str) -> Danger | None:
    """Return the danger of a breakpoint at `FILE:FUNCTION+OFFSET`, None if there is none.

    The offset must be inside of the function, and the first byte of an instruction (x86-64). The
    kernel checks neither: it changes the byte, and the program runs what results.
    """
    try:
        file, function, distance = parse_place(place)
        if not function:
            return None
        path = find_file(file, "uprobe")
        with open_image(path) as (image, _):
            ranges = sorted(function_ranges(image, function))
            if not ranges:
                is_there = not distance and function in functions_named(
                    image, function.__eq__, FUNCTIONS
                )
                return Danger(_unknown_size(function), can_be_forced=True) if is_there else None
            offset, size = ranges[0]
            if distance >= size:
                message = f"Offset outside the function bounds ('{function}' size is {size})"
                return Danger(message, can_be_forced=False)
            if distance and image.machine == EM_X86_64 and image.is64:
                return _check_instruction(path, offset, distance)
    except (PurebpfError, OSError, ValueError):
        pass
    return None


def _unknown_size(function: str) -> str:
    return (
        f"Could not determine boundary for {function} (symbol has size 0).\n"
        "Use --unsafe to force attachment. WARNING: This option could lead to data corruption in "
        "the target process."
    )


def _check_instruction(path: str, offset: int, distance: int) -> Danger | None:
    """Return the danger if no instruction begins `distance` bytes behind the function's start."""
    with open(path, "rb") as file:
        file.seek(offset)
        code = file.read(min(distance, _MOST_CODE) + _LONGEST)
    at = 0
    try:
        while at < distance:
            at += decode(code, at).size
    except CodeError:
        return Danger(f"the instructions before +{distance} are not known", can_be_forced=True)
    if at == distance:
        return None
    message = "Possible attachment attempt in the middle of an instruction, try a different offset."
    return Danger(message, can_be_forced=True)
