"""Facts from the file of PHP's engine: the version, and the places of its data and its loop."""

from __future__ import annotations

from purebpf.late_pattern import compile_later
from purebpf.runtimes.file_symbols import find_symbols, name_places
from purebpf.symbols.code_range import CodeRange
from purebpf.symbols.elf_image import ElfImage
from purebpf.tuples import NamedTuple

__all__ = ["PhpFile", "read_php_file"]

_GLOBALS, _LOOP, _GENERATORS = b"executor_globals", b"execute_ex", b"zend_ce_generator"
_NAMES = name_places((_GLOBALS, _LOOP, _GENERATORS))
_MOST_CONSTANTS = 1 << 26
_BUILD = compile_later(rb"\0API([0-9]{9}),(N?TS)(,debug)?\0")


class PhpFile(NamedTuple):
    """Addresses in the file, as it is linked.

    Attributes:
        api: the number of the interface for extensions of the engine.
        has_threads: it is built with threads (ZTS), and has no global `executor_globals`.
        is_debug: it is built for debugging, with other layouts.
        executor: of `executor_globals`; 0: there is none.
        generators: of `zend_ce_generator`, a pointer to their class; 0: there is none.
        loop: the function that runs scripts.
    """

    api: int
    has_threads: bool
    is_debug: bool
    executor: int
    generators: int
    loop: tuple[CodeRange, ...]


def read_php_file(image: ElfImage) -> PhpFile | None:
    """Read what a file says of its engine; None: it has none.

    Stripped files keep the symbols that extensions link with.

    Raises:
        FormatError: its headers contradict each other.
    """
    constants = image.section(".rodata")
    if not image.is64 or image.order != "<" or constants is None:
        return None
    if constants.size > _MOST_CONSTANTS:
        return None
    built = _BUILD.search(image.contents(constants))
    if built is None:
        return None
    symbols = find_symbols(image, image.section(".dynsym"), _NAMES)
    found = {name: (address, size) for name, address, size in symbols}
    executor, generators = (found.get(name, (0, 0))[0] for name in (_GLOBALS, _GENERATORS))
    start, size = found.get(_LOOP, (0, 0))
    return PhpFile(
        int(built[1]),
        built[2] == b"TS",
        built[3] is not None,
        executor,
        generators,
        (CodeRange(start, start + size),) if size else (),
    )
