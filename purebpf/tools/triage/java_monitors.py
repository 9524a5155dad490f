"""The monitors that threads of JVMs wait for; purebpf asks no JVM for a thread dump."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from purebpf.errors import FormatError, KernelError
from purebpf.findings.facts import JavaMonitor
from purebpf.observe.symbols.elf_files import open_mapped
from purebpf.runtimes.cpython.memory import CachedMemory
from purebpf.runtimes.hotspot.monitors import wanted_monitors
from purebpf.runtimes.hotspot.vm_structs import EXPORTS
from purebpf.symbols.elf_image import ElfImage
from purebpf.symbols.proc_maps import Mapping, parse_maps
from purebpf.syscall import proc
from purebpf.syscall.process_memory import open_process_memory, reading_others
from purebpf.unwind.elf_frames import load_bias

__all__ = ["java_monitors"]

_LIBRARY = "libjvm.so"
_SYMBOL_SIZE = 24
_MOST_SYMBOLS = 1 << 16
_MOST_PROCESSES = 8


def java_monitors(pids: Iterable[int]) -> Iterator[JavaMonitor]:
    """The monitors that threads of these processes wait to enter now."""
    with reading_others():
        for pid in list(pids)[:_MOST_PROCESSES]:
            try:
                yield from _of_process(pid)
            except (KernelError, FormatError, OSError):
                continue


def _of_process(pid: int) -> Iterator[JavaMonitor]:
    mapped = next(
        (one for one in parse_maps(proc.maps(pid) or "") if one.file.path.endswith(_LIBRARY)), None
    )
    memory = open_process_memory(pid)
    if mapped is None or memory is None:
        return
    with memory:
        symbols = _exports(mapped, pid)
        if not symbols:
            return
        for wanted in wanted_monitors(CachedMemory(memory.read), symbols):
            yield JavaMonitor(pid, *wanted)


def _exports(mapped: Mapping, pid: int) -> dict[str, int]:
    """The addresses of the symbols that describe the JVM; {} if there are none."""
    fd = open_mapped(mapped, (pid,))
    try:
        size = os.fstat(fd).st_size
        image = ElfImage(lambda at, wanted: os.pread(fd, wanted, at), size, mapped.file.path)
        bias = load_bias(image.segments, mapped.start, mapped.offset)
        table = image.section(".dynsym")
        if bias is None or table is None or table.size > _MOST_SYMBOLS * _SYMBOL_SIZE:
            return {}
        strings = image.contents(image.linked_section(table))
        raw = image.contents(table)
    finally:
        os.close(fd)
    found: dict[str, int] = {}
    for at in range(0, len(raw) - _SYMBOL_SIZE + 1, _SYMBOL_SIZE):
        start = int.from_bytes(raw[at : at + 4], "little")
        name = strings[start : strings.find(b"\0", start)].decode("ascii", "replace")
        if name in EXPORTS:
            found[name] = bias + int.from_bytes(raw[at + 8 : at + 16], "little")
    return found if len(found) == len(EXPORTS) else {}
