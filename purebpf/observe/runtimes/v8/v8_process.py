"""`V8Process`: the V8 of a process, read through /proc/PID/mem.

Needs the rights of ptrace(2) (PTRACE_MODE_ATTACH_FSCREDS in proc(5)): the same user, or
CAP_SYS_PTRACE. The process is neither stopped nor asked, and runs none of our code.
"""

from __future__ import annotations

import os

from purebpf.closable import Closing
from purebpf.errors import FormatError, NotSupportedError
from purebpf.observe.runtimes.v8.node_file import find_node
from purebpf.observe.runtimes.v8.v8_program import V8Program, read_program
from purebpf.runtimes.memory import CachedMemory, Memory
from purebpf.runtimes.v8.code import CodeReader
from purebpf.runtimes.v8.code_ranges import CodeRanges
from purebpf.runtimes.v8.frames import JavaScriptFrames
from purebpf.runtimes.v8.functions import Functions
from purebpf.runtimes.v8.heap import Heap
from purebpf.runtimes.v8.layout import V8LayoutError
from purebpf.symbols.proc_maps import Mapping, parse_maps
from purebpf.syscall import proc
from purebpf.syscall.process_memory import ProcessMemory, open_process_memory
from purebpf.unwind.machine import X86_64

__all__ = ["V8Process", "V8Reading", "find_v8"]

_FRAMES = "JavaScript frames"
_MEMORY_READS = 1 << 18
"""Pieces of pages that one look at a process reads."""


def _code_ranges(mappings: list[Mapping], library: Mapping, program: V8Program) -> CodeRanges:
    """V8 may map the pages with its builtins again, beside the code that it generates."""
    builtins = []
    for one in mappings:
        if one.file == library.file:
            start = one.start + program.builtins.start - one.offset
            end = one.start + program.builtins.end - one.offset
            builtins.append((max(start, one.start), min(end, one.end)))
    generated = [(one.start, one.end) for one in mappings if one.file.is_anonymous]
    return CodeRanges(generated, [(start, end) for start, end in builtins if start < end])


class V8Reading:
    """A process's memory at one moment, more or less: each page is read once.

    Args:
        memory: the process's.
        program: its V8.
        ranges: where V8's code is.

    Attributes:
        has_monitors: False: no thread waits for a monitor of an object.
        layout, ranges: of its V8, and where its code is.
        functions, code: the parts of V8.
    """

    def __init__(self, memory: ProcessMemory, program: V8Program, ranges: CodeRanges) -> None:
        cached = CachedMemory(memory.read, _MEMORY_READS)
        self.has_monitors = False
        self.layout = program.layout
        self.ranges = ranges
        self._kinds = program.kinds
        heap = Heap(cached, program.layout)
        self.functions = Functions(heap)
        self.code = CodeReader(heap, self.functions, program.sizes, ranges)
        self._now = Heap(Memory(memory.read), program.layout)

    def is_still(self, shared: int, script: int, literal: int) -> bool:
        """Return True if a SharedFunctionInfo is now the one of these numbers."""
        found = Functions(self._now).numbers(shared)
        return found == (script, literal)

    def frames(self) -> JavaScriptFrames:
        """Return a new walk through the JavaScript frames of a stack."""
        return JavaScriptFrames(self.ranges, self.functions, self.code, self._kinds)


class V8Process(Closing):
    """A process with V8.

    Args:
        pid: the process.
        memory: the process's; closed with this.
        library: a mapping of the file with V8.
        program: that file.

    Attributes:
        version: of V8, "13.6".
        library: an address in that file.
    """

    def __init__(
        self, pid: int, memory: ProcessMemory, library: Mapping, program: V8Program
    ) -> None:
        self._pid = pid
        self._memory = memory
        self._mapping = library
        self._program = program
        self.library = int(library.start)
        version = program.layout.version
        self.version = f"{version // 100}.{version % 100}"

    def look(self) -> V8Reading:
        """Return its memory as it is now."""
        mappings = list(parse_maps(proc.maps(self._pid) or ""))
        ranges = _code_ranges(mappings, self._mapping, self._program)
        return V8Reading(self._memory, self._program, ranges)

    def close(self) -> None:
        """Close the memory; again is harmless."""
        self._memory.close()


def find_v8(pid: int) -> V8Process | None:
    """The V8 of a process; None: it runs none, or has ended.

    Raises:
        KernelError: the process is another user's.
        NotSupportedError: a V8 whose frames are not read; the message says why.
    """
    mapped = find_node(pid)
    if mapped is None:
        return None
    if os.uname().machine != X86_64.name:
        raise NotSupportedError(_FRAMES, "they are read on x86_64 only")
    try:
        program = read_program(mapped, pid)
    except (FormatError, OSError, V8LayoutError) as error:
        raise NotSupportedError(_FRAMES, str(error)) from None
    memory = open_process_memory(pid)
    return None if memory is None else V8Process(pid, memory, mapped, program)
