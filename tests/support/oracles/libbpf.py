"""libbpf through ctypes, as an oracle: what it makes of an object's instructions."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path


class _OpenOptions(ctypes.Structure):
    """struct bpf_object_open_opts of libbpf 1.0, up to btf_custom_path."""

    _fields_ = (
        ("sz", ctypes.c_size_t),
        ("object_name", ctypes.c_char_p),
        ("relaxed_maps", ctypes.c_bool),
        ("pin_root_path", ctypes.c_char_p),
        ("removed", ctypes.c_uint32),
        ("kconfig", ctypes.c_char_p),
        ("btf_custom_path", ctypes.c_char_p),
    )


_PRINT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
_REFUSAL = b"failed to perform CO-RE relocations"
_STACK_TRACE = 7
TABLES = (1, 2, 5, 6, 7, 9, 10)
"""Hashes, arrays and stack traces."""
_said: list[bytes] = []


@_PRINT
def _note(_level: int, text: bytes, arguments: int) -> int:
    said = ctypes.create_string_buffer(4096)
    ctypes.CDLL(None).vsnprintf(said, len(said), text, ctypes.c_void_p(arguments))
    _said.append(said.value)
    return 0


@cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL("libbpf.so.1", use_errno=True)
    pointer = ctypes.c_void_p
    for name, result, arguments in (
        ("bpf_object__open_file", pointer, (ctypes.c_char_p, pointer)),
        ("bpf_object__next_program", pointer, (pointer, pointer)),
        ("bpf_object__next_map", pointer, (pointer, pointer)),
        ("bpf_map__type", ctypes.c_int, (pointer,)),
        ("bpf_map__max_entries", ctypes.c_uint32, (pointer,)),
        ("bpf_map__set_max_entries", ctypes.c_int, (pointer, ctypes.c_uint32)),
        ("bpf_map__value_size", ctypes.c_uint32, (pointer,)),
        ("bpf_map__set_value_size", ctypes.c_int, (pointer, ctypes.c_uint32)),
        ("bpf_object__load", ctypes.c_int, (pointer,)),
        ("bpf_object__close", None, (pointer,)),
        ("bpf_program__name", ctypes.c_char_p, (pointer,)),
        ("bpf_program__autoload", ctypes.c_bool, (pointer,)),
        ("bpf_program__fd", ctypes.c_int, (pointer,)),
        ("bpf_program__insns", pointer, (pointer,)),
        ("bpf_program__insn_cnt", ctypes.c_size_t, (pointer,)),
        ("libbpf_set_print", pointer, (_PRINT,)),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    library.libbpf_set_print(_note)
    return library


def version() -> str:
    """Of the installed library: "v1.1"."""
    library = ctypes.CDLL("libbpf.so.1")
    library.libbpf_version_string.restype = ctypes.c_char_p
    text: bytes = library.libbpf_version_string()
    return text.decode()


@contextmanager
def _opened(path: Path, btf: Path | None) -> Iterator[int]:
    library = _library()
    options = _OpenOptions(ctypes.sizeof(_OpenOptions))
    options.btf_custom_path = os.fsencode(btf) if btf else None
    opened = library.bpf_object__open_file(os.fsencode(path), ctypes.byref(options))
    if not opened:
        raise OSError(ctypes.get_errno(), f"libbpf does not open {path.name}")
    try:
        yield opened
    finally:
        library.bpf_object__close(opened)


def relocate(path: Path, btf: Path | None = None) -> Mapping[str, bytes]:
    """The linked instructions of each program that loads by default, by name.

    libbpf relocates everything before it loads the first program, so this needs no program to
    be acceptable to the kernel. `btf` is an ELF file with the types to relocate against.

    Raises:
        OSError: it does not open the object, or gives up before every program is linked.
    """
    library = _library()
    _said.clear()
    with _opened(path, btf) as opened:
        _complete_maps(opened)
        before = {name: _instructions(program) for name, program in _programs(opened)}
        status = library.bpf_object__load(opened)
        after = {name: _instructions(program) for name, program in _programs(opened)}
        refused = any(_REFUSAL in text for text in _said)
        if refused or (status and before == after):
            said = b"".join(_said[-10:]).decode(errors="replace")
            raise OSError(-status, f"libbpf does not relocate {path.name}:\n{said}")
        return after


def _complete_maps(opened: int) -> None:
    """Sizes for the maps that the user of an object is meant to give them."""
    library = _library()
    found = library.bpf_object__next_map(opened, None)
    while found:
        kind = library.bpf_map__type(found)
        if kind == _STACK_TRACE and not library.bpf_map__value_size(found):
            library.bpf_map__set_value_size(found, 8)
        if kind in TABLES and not library.bpf_map__max_entries(found):
            library.bpf_map__set_max_entries(found, 1)
        found = library.bpf_object__next_map(opened, found)


@contextmanager
def loaded(path: Path) -> Iterator[Mapping[str, int]]:
    """An object in the kernel: the descriptor of each program that loads by default, by name.

    Raises:
        OSError: libbpf or the kernel refuses it.
    """
    library = _library()
    with _opened(path, None) as opened:
        _complete_maps(opened)
        status = library.bpf_object__load(opened)
        if status:
            raise OSError(-status, f"libbpf does not load {path.name}")
        yield {name: library.bpf_program__fd(program) for name, program in _programs(opened)}


def _programs(opened: int) -> Iterator[tuple[str, int]]:
    library = _library()
    program = library.bpf_object__next_program(opened, None)
    while program:
        if library.bpf_program__autoload(program):
            yield library.bpf_program__name(program).decode(), program
        program = library.bpf_object__next_program(opened, program)


def _instructions(program: int) -> bytes:
    library = _library()
    size = 8 * library.bpf_program__insn_cnt(program)
    return ctypes.string_at(library.bpf_program__insns(program), size)
