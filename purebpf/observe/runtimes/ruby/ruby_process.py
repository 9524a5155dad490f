"""`RubyProcess`: the Ruby that runs in a process, read through /proc/PID/mem.

Needs the rights of ptrace(2) (PTRACE_MODE_ATTACH_FSCREDS in proc(5)): the same user, or
CAP_SYS_PTRACE. The process is neither stopped nor asked.
"""

from __future__ import annotations

import os

from purebpf.errors import FormatError, NotSupportedError
from purebpf.observe.runtimes.loop_parts import whole_loop
from purebpf.observe.runtimes.ruby.ruby_layout import pack_ruby_process
from purebpf.observe.runtimes.ruby.ruby_loop import find_loop
from purebpf.observe.runtimes.ruby.ruby_names import describe_ruby
from purebpf.observe.runtimes.said_lines import SAID_LINES
from purebpf.observe.runtimes.script_file import find_script_file
from purebpf.observe.runtimes.script_process import ScriptProcess
from purebpf.observe.symbols.mapped_files import Identity, open_mapped
from purebpf.runtimes.interpreted import MAX_FRAMES, InterpretedStack
from purebpf.runtimes.memory import MOST_READS, CachedMemory, Memory, UnreadableError
from purebpf.runtimes.ruby.contexts import ContextSlot, find_slot, main_context, read_context
from purebpf.runtimes.ruby.frames import RubyFunctions, first_instruction, read_ruby_frames
from purebpf.runtimes.ruby.layout import LAYOUTS, RubyLayout
from purebpf.runtimes.ruby.ruby_file import MainThread, RubyFile, read_ruby_file
from purebpf.symbols.code_range import CodeRange
from purebpf.symbols.elf_image import ElfImage, Segment
from purebpf.symbols.proc_maps import Mapping
from purebpf.syscall.process_memory import ProcessMemory, open_process_memory
from purebpf.unwind.elf_frames import load_bias

__all__ = ["RubyProcess", "find_ruby"]

_FRAMES = "Ruby frames"
_MOST_KNOWN = 64
_Key = tuple[Identity, int]
_known: dict[_Key, tuple[RubyFile | None, list[Segment]]] = {}
_loops: dict[_Key, tuple[CodeRange, ...]] = {}


class RubyProcess(ScriptProcess):
    """A process with Ruby.

    Args:
        memory: the process's; closed with this.
        mapped: a mapping of the file with the interpreter.
        file: that file.
        slot: where its threads have their execution contexts.
        bias: from an address in the file to one in the process.

    Attributes:
        layout: of the interpreter.
        slot: as it says.
        symbols: the address of the names of methods; 0: not known.
    """

    language = "Ruby"
    lines = SAID_LINES

    def __init__(
        self, memory: ProcessMemory, mapped: Mapping, file: RubyFile, slot: ContextSlot, bias: int
    ) -> None:
        self._memory = memory
        self.version = file.version
        self.layout: RubyLayout = LAYOUTS[file.version]
        self.slot = slot
        self.symbols = file.symbols + bias if file.symbols else 0
        self.loop = tuple(CodeRange(part.start + bias, part.end + bias) for part in file.loop)
        self.path = mapped.file.path

    def pack(self, identity: int, generation: int) -> bytes:
        """Return the struct python_process of bpf_src/include/python_layout.h.

        Raises:
            NotSupportedError: BPF has other offsets.
        """
        return pack_ruby_process(self.layout, self.slot, identity, generation)

    def describe(
        self, raw: bytes, lengths: tuple[int, int, int], strings: tuple[int, int, int]
    ) -> tuple[str, str]:
        """Return the name and the file of a function that BPF met: see `describe_ruby`."""
        memory = Memory(self._memory.read)
        texts = (raw, *lengths[:2])
        return describe_ruby(self.layout, memory, self.symbols, texts, strings[:2])

    def frames(
        self,
        pointer: int,
        *,
        is_first: bool,
        most_reads: int = MOST_READS,
        most: int = MAX_FRAMES,
    ) -> InterpretedStack | None:
        """Return the frames of a thread as they are now; None: Ruby does not know it."""
        del is_first
        memory = CachedMemory(self._memory.read, most_reads)
        try:
            context = read_context(memory, self.slot, pointer)
        except UnreadableError:
            return None
        functions = RubyFunctions(self.layout, memory, self.symbols)
        return read_ruby_frames(self.layout, memory, functions, context, most)


def find_ruby(pid: int, mappings: list[Mapping] | None = None) -> RubyProcess | None:
    """The Ruby of a process; None: it runs none, has ended, or has only just begun to run it.

    Args:
        pid: the process.
        mappings: its executable mappings, if they were just read.

    Raises:
        KernelError: the process is another user's.
        NotSupportedError: a Ruby whose frames are not read; the message says why.
    """
    mapped = find_script_file(pid, "ruby", mappings)
    if mapped is None:
        return None
    try:
        key, file, segments = _read_file(mapped, pid)
    except (FormatError, OSError) as error:
        raise NotSupportedError(_FRAMES, str(error)) from None
    bias = load_bias(segments, mapped.start, mapped.offset)
    if file is None or bias is None:
        raise NotSupportedError(_FRAMES, f"{mapped.file.path} has no interpreter of Ruby")
    if file.version not in LAYOUTS:
        known = ", ".join(".".join(map(str, version)) for version in LAYOUTS)
        raise NotSupportedError(
            _FRAMES, f"the layout of Ruby {file.release} is not known (known: {known})"
        )
    if file.context is None:
        raise NotSupportedError(
            _FRAMES, f"the file of Ruby {file.release} does not say where threads have their state"
        )
    memory = open_process_memory(pid)
    if memory is None:
        return None
    try:
        slot = find_slot(Memory(memory.read), file.context, bias)
        loop = file.loop
        if not loop and file.main is not None:
            instruction = _instruction(file, file.main, Memory(memory.read), bias)
            loop = _loops.get(key) or _loop(key, mapped, pid, instruction)
    except UnreadableError:
        memory.close()
        return None
    except (FormatError, OSError) as error:
        memory.close()
        raise NotSupportedError(_FRAMES, str(error)) from None
    return RubyProcess(memory, mapped, file._replace(loop=loop), slot, bias)


def _read_file(mapped: Mapping, pid: int) -> tuple[_Key, RubyFile | None, list[Segment]]:
    fd = open_mapped(mapped, (pid,))
    try:
        key, image = _open_image(fd, mapped)
        if key not in _known:
            if len(_known) >= _MOST_KNOWN:
                _known.clear()
                _loops.clear()
            file = read_ruby_file(image)
            if file is not None and file.version in LAYOUTS:
                file = file._replace(loop=tuple(whole_loop(image, file.loop)))
            _known[key] = file, image.segments
        return key, *_known[key]
    finally:
        os.close(fd)


def _instruction(file: RubyFile, main: MainThread, memory: Memory, bias: int) -> int:
    """Return an address of the file, in the function that executes instructions.

    Raises:
        UnreadableError: the first thread executes nothing yet.
    """
    layout = LAYOUTS[file.version]
    context = main_context(layout, memory, main, bias)
    return first_instruction(layout, memory, context) - bias


def _loop(key: _Key, mapped: Mapping, pid: int, instruction: int) -> tuple[CodeRange, ...]:
    """Return the function that runs methods; () if it is not found."""
    fd = open_mapped(mapped, (pid,))
    try:
        _loops[key] = find_loop(_open_image(fd, mapped)[1], instruction)
    finally:
        os.close(fd)
    return _loops[key]


def _open_image(fd: int, mapped: Mapping) -> tuple[_Key, ElfImage]:
    status = os.fstat(fd)
    key = Identity.of(status), mapped.file.inode
    image = ElfImage(lambda at, size: os.pread(fd, size, at), status.st_size, mapped.file.path)
    return key, image
