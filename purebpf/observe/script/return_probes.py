"""Returns of functions of programs, without return probes where an unwinder may pass.

A uretprobe replaces the return address on the stack. An unwinder that meets it ends the program: a
C++ exception, a Rust panic, pthread_cancel(3), pthread_exit(3), a Go stack that grows. So the `ret`
instructions of the function have a probe each: there, the registers are those of the caller but for
the stack pointer, and the result is where a uretprobe finds it. A function that ends in another one
(a tail call) does not have all of its returns, and the other one has returns of further calls; it
has a return probe if no unwinder can pass.
"""

from __future__ import annotations

from functools import lru_cache

from purebpf.errors import AttachError, FormatError
from purebpf.files.regular_file import Identity
from purebpf.late_pattern import compile_later
from purebpf.loader.attach._common.probe_place import ProbePlaces, open_image
from purebpf.observe.script.unsafe_return import UnsafeReturnError
from purebpf.observe.symbols.function_code import FunctionCode
from purebpf.symbols.elf_image import SHT_DYNSYM, ElfImage
from purebpf.symbols.elf_imports import imported_function, needed_libraries
from purebpf.symbols.elf_names import FUNCTIONS, functions_named
from purebpf.symbols.go_table import has_go_code
from purebpf.symbols.x86_64_code import CodeError
from purebpf.syscall import proc

__all__ = ["find_returns"]

_UNWINDERS = compile_later(r"lib(?:gcc_s|stdc\+\+|c\+\+|c\+\+abi|unwind|gnat|objc|go)\b")
"""Libraries that unwind stacks, or programs with one of them do."""
_UNWINDING = ("_Unwind_RaiseException", "_Unwind_ForcedUnwind", "_Unwind_Resume")
_FORCING = ("pthread_cancel", "pthread_exit", "thrd_exit", "dlopen", "dlmopen")
"""The C library loads libgcc_s for them; or they load any library."""
_EXCEPTIONS = ".gcc_except_table"


def find_returns(places: ProbePlaces, name: str, pid: int = 0) -> tuple[int, ...] | None:
    """Return the offsets of a function's `ret` instructions; None: it may have a return probe.

    Args:
        places: where the function starts.
        name: the probe, for the error.
        pid: the only process to trace; 0: every one.

    Raises:
        UnsafeReturnError: neither.
        OSError: the file cannot be read.
    """
    offset = places.offsets[0]
    try:
        with open_image(places.path) as (image, identity):
            returns, problem = _returns_of(places.path, identity, offset)
            if returns:
                return returns
            unwinder = _unwinder_of(image, pid)
    except (AttachError, FormatError) as error:
        problem, unwinder = str(error), "its file cannot be read"
    if not unwinder:
        return None
    raise UnsafeReturnError(
        name,
        f"{problem}, and a return probe would end the program when an unwinder passes "
        f"({unwinder}). Count its calls with uprobe, time them with `purebpf latency`, or allow "
        "the return probe with --unsafe",
    )


@lru_cache(maxsize=1024)
def _returns_of(path: str, identity: Identity, offset: int) -> tuple[tuple[int, ...], str]:
    """Return the `ret` instructions, or the reason why they are not all known."""
    del identity  # a part of the key
    with open_image(path) as (image, _):
        code = FunctionCode(image)
        try:
            exits = code.exits(offset)
        except (CodeError, FormatError) as error:
            return (), str(error)
    if exits.leaving or exits.entered or not exits.returns:
        return (), "its calls may end in other functions (tail calls)"
    return exits.returns, ""


def _unwinder_of(image: ElfImage, pid: int) -> str:
    """Return the reason why an unwinder may pass, "" if none can."""
    if pid:
        text = proc.maps(pid)
        if not text:
            return "the files of its process are not known"
        if found := _UNWINDERS.search(text):
            return f"process {pid} has {found[0]}"
    elif not _is_program(image):
        return "any program may use the library"
    if image.section(_EXCEPTIONS) is not None:
        return f"it has {_EXCEPTIONS}"
    if has_go_code(image):
        return "it has functions of Go"
    if library := next(filter(_UNWINDERS.match, needed_libraries(image)), ""):
        return f"it needs {library}"
    names = (*_UNWINDING, *_FORCING)
    if name := next((name for name in names if imported_function(image, name)), ""):
        return f"it calls {name}()"
    if functions_named(image, _UNWINDING.__contains__, FUNCTIONS):
        return "it has an unwinder"
    return ""


def _is_program(image: ElfImage) -> bool:
    """Return True if a file is started, not loaded: it has an interpreter, or is static."""
    return image.section(".interp") is not None or image.section_of_type(SHT_DYNSYM) is None
