"""`PhpProcess`: the PHP that runs in a process, read through /proc/PID/mem.

Needs the rights of ptrace(2) (PTRACE_MODE_ATTACH_FSCREDS in proc(5)): the same user, or
CAP_SYS_PTRACE. The process is neither stopped nor asked.
"""

from __future__ import annotations

import os

from purebpf.errors import FormatError, NotSupportedError
from purebpf.observe.runtimes.loop_parts import whole_loop
from purebpf.observe.runtimes.php.php_layout import pack_php_process
from purebpf.observe.runtimes.php.php_names import PhpTexts, describe_php
from purebpf.observe.runtimes.said_lines import SAID_LINES
from purebpf.observe.runtimes.script_file import find_script_file
from purebpf.observe.runtimes.script_process import ScriptProcess
from purebpf.observe.symbols.mapped_files import Identity, open_mapped
from purebpf.runtimes.interpreted import MAX_FRAMES, InterpretedStack
from purebpf.runtimes.memory import MOST_READS, CachedMemory, Memory
from purebpf.runtimes.php.frames import PhpFunctions, PhpState, read_php_frames
from purebpf.runtimes.php.layout import LAYOUTS, PhpLayout, version_of
from purebpf.runtimes.php.php_file import PhpFile, read_php_file
from purebpf.symbols.code_range import CodeRange
from purebpf.symbols.elf_image import ElfImage, Segment
from purebpf.symbols.proc_maps import Mapping
from purebpf.syscall.process_memory import ProcessMemory, open_process_memory
from purebpf.unwind.elf_frames import load_bias

__all__ = ["PhpProcess", "find_php"]

_FRAMES = "PHP frames"
_MOST_KNOWN = 64
_known: dict[tuple[Identity, int], tuple[PhpFile | None, list[Segment]]] = {}


class PhpProcess(ScriptProcess):
    """A process with PHP.

    Args:
        memory: the process's; closed with this.
        mapped: a mapping of the file with the engine.
        file: that file.
        layout: of the engine.
        bias: from an address in the file to one in the process.

    Attributes:
        layout: as it says.
        state: where its frames begin.
    """

    language = "PHP"
    lines = SAID_LINES

    def __init__(
        self, memory: ProcessMemory, mapped: Mapping, file: PhpFile, layout: PhpLayout, bias: int
    ) -> None:
        self._memory = memory
        self.version = layout.version // 100, layout.version % 100
        self.layout = layout
        generators = file.generators + bias if file.generators else 0
        self.state = PhpState(file.executor + bias, generators)
        self.loop = tuple(CodeRange(part.start + bias, part.end + bias) for part in file.loop)
        self.path = mapped.file.path

    def pack(self, identity: int, generation: int) -> bytes:
        """Return the struct python_process of bpf_src/include/python_layout.h.

        Raises:
            NotSupportedError: BPF has other offsets.
        """
        return pack_php_process(self.layout, self.state, identity, generation)

    def describe(
        self, raw: bytes, lengths: tuple[int, int, int], strings: tuple[int, int, int]
    ) -> tuple[str, str]:
        """Return the name and the file of a function that BPF met: see `describe_php`."""
        memory = Memory(self._memory.read)
        return describe_php(self.layout, memory, PhpTexts(raw, *lengths), strings)

    def frames(
        self,
        pointer: int,
        *,
        is_first: bool,
        most_reads: int = MOST_READS,
        most: int = MAX_FRAMES,
    ) -> InterpretedStack | None:
        """Return the frames of the first thread, which runs scripts, as they are now."""
        del pointer
        if not is_first:
            return None
        memory = CachedMemory(self._memory.read, most_reads)
        functions = PhpFunctions(self.layout, memory)
        return read_php_frames(self.layout, memory, functions, self.state, most)


def find_php(pid: int, mappings: list[Mapping] | None = None) -> PhpProcess | None:
    """The PHP of a process; None: it runs none, or has ended.

    Args:
        pid: the process.
        mappings: its executable mappings, if they were just read.

    Raises:
        KernelError: the process is another user's.
        NotSupportedError: a PHP whose frames are not read; the message says why.
    """
    mapped = find_script_file(pid, "php", mappings)
    if mapped is None:
        return None
    try:
        file, segments = _read_file(mapped, pid)
    except (FormatError, OSError) as error:
        raise NotSupportedError(_FRAMES, str(error)) from None
    bias = load_bias(segments, mapped.start, mapped.offset)
    if file is None or bias is None:
        raise NotSupportedError(_FRAMES, f"{mapped.file.path} has no engine of PHP")
    layout = LAYOUTS.get(file.api)
    version = version_of(file.api)
    name = f"PHP {version}" if version else f"the PHP with extension API {file.api}"
    if layout is None:
        known = ", ".join(version_of(api) for api in LAYOUTS)
        raise NotSupportedError(_FRAMES, f"the layout of {name} is not known (known: {known})")
    if file.has_threads:
        raise NotSupportedError(_FRAMES, f"{name} is built with threads (ZTS)")
    if file.is_debug or not file.executor:
        raise NotSupportedError(_FRAMES, f"{name} is built for debugging, or exports no symbols")
    memory = open_process_memory(pid)
    return None if memory is None else PhpProcess(memory, mapped, file, layout, bias)


def _read_file(mapped: Mapping, pid: int) -> tuple[PhpFile | None, list[Segment]]:
    fd = open_mapped(mapped, (pid,))
    try:
        status = os.fstat(fd)
        key = Identity.of(status), mapped.file.inode
        if key not in _known:
            image = ElfImage(
                lambda at, size: os.pread(fd, size, at), status.st_size, mapped.file.path
            )
            if len(_known) >= _MOST_KNOWN:
                _known.clear()
            file = read_php_file(image)
            if file is not None:
                file = file._replace(loop=tuple(whole_loop(image, file.loop)))
            _known[key] = file, image.segments
        return _known[key]
    finally:
        os.close(fd)
