"""`JavaProcess`: the JVM of a process, read through /proc/PID/mem.

Needs the rights of ptrace(2) (PTRACE_MODE_ATTACH_FSCREDS in proc(5)): the same user, or
CAP_SYS_PTRACE. The process is neither stopped nor asked, and runs none of our code.
"""

from __future__ import annotations

import os

from purebpf.closable import Closing
from purebpf.errors import FormatError, NotSupportedError
from purebpf.observe.runtimes.hotspot.libjvm import find_library, read_exports
from purebpf.observe.symbols.mapped_files import Identity, open_mapped
from purebpf.runtimes.hotspot.code_cache import Blob, CodeCache
from purebpf.runtimes.hotspot.frames import JavaFrames
from purebpf.runtimes.hotspot.inlined import InlinedMethods
from purebpf.runtimes.hotspot.layout import Addresses, Jvm, LayoutError, read_jvm
from purebpf.runtimes.hotspot.methods import Methods, method_identity
from purebpf.runtimes.hotspot.perf_data import find_counter
from purebpf.runtimes.hotspot.vm_structs import ALL_EXPORTS
from purebpf.runtimes.memory import CachedMemory, Memory, UnreadableError
from purebpf.symbols.proc_maps import Mapping
from purebpf.syscall import proc
from purebpf.syscall.process_memory import ProcessMemory, open_process_memory
from purebpf.unwind.machine import X86_64

__all__ = ["UNKNOWN", "JavaProcess", "JavaReading", "find_java"]

_FRAMES = "Java frames"
_MOST_KNOWN = 64
_UNLOADED = "java.cls.unloadedClasses"
_MOST_COUNTERS = 1 << 20
UNKNOWN = (1 << 64) - 1
"""In place of a number of classes."""
_Key = tuple[Identity, int, int, int | None]
_known: dict[_Key, tuple[int, Jvm]] = {}
"""Descriptions by file, mapping and user, each with the address of its mapping. They come from the
memory of a process, which may lie: another user's are never used."""


class JavaReading:
    """A JVM's memory at one moment, more or less: each page is read once.

    Args:
        read: the process's memory.
        jvm: its description.
        counter: the address of the number of classes that it has unloaded; 0: not known.

    Attributes:
        counter: as given.
        unloaded: the number of classes that it had unloaded before the first page was read.
        layout, cache, methods, inlined: the parts of the JVM.
        has_monitors: True: its objects have monitors, which threads enter.

    Raises:
        LayoutError: the code cache is not there yet.
    """

    def __init__(self, read: ProcessMemory, jvm: Jvm, counter: int = 0) -> None:
        memory = self._memory = CachedMemory(read.read)
        self.has_monitors = True
        self._now = Memory(read.read)
        self.counter = counter
        self.unloaded = self.unloaded_now()
        self.layout = jvm.layout
        self.cache = CodeCache(memory, jvm)
        self.methods = Methods(memory, jvm.layout)
        self.inlined = InlinedMethods(memory, jvm.layout)

    def frames(self) -> JavaFrames:
        """Return a new walk through the Java frames of a stack."""
        return JavaFrames(self.cache, self.methods, self.inlined, self._now)

    def is_still(self, blob: Blob) -> bool:
        """Return True if a compilation is still there: JDK 11 and 17 clear its method first."""
        return self.cache.identity(self._now, blob) == (blob.compile_id, blob.method)

    def identity(self, method: int) -> int:
        """The `method_identity` of what was read of a method; 0: it cannot be read."""
        return method_identity(self._memory, self.layout, method)

    def identity_now(self, method: int) -> int:
        """The `method_identity` of a method now; 0: it cannot be read."""
        return method_identity(self._now, self.layout, method)

    def unloaded_now(self) -> int:
        """Return how many classes the JVM has unloaded by now; `UNKNOWN`: it does not say."""
        try:
            return self._now.number(self.counter) if self.counter else UNKNOWN
        except UnreadableError:
            return UNKNOWN

    def constant(self, method: int) -> int:
        """The address of a method's ConstMethod now; 0: it cannot be read."""
        try:
            return self._now.number(method + self.layout.method_constant)
        except UnreadableError:
            return 0


class JavaProcess(Closing):
    """A JVM.

    Args:
        memory: the process's; closed with this.
        jvm: its description.

        library: an address in libjvm.so.

    Attributes:
        release: its version in full.
        library: as given.
    """

    def __init__(self, memory: ProcessMemory, jvm: Jvm, library: int) -> None:
        self._memory = memory
        self._jvm = jvm
        self._counter: int | None = None
        self.release = jvm.release
        self.library = library

    def look(self) -> JavaReading:
        """Return its memory as it is now.

        Raises:
            NotSupportedError: the JVM has no code cache yet.
        """
        try:
            if self._counter is None:  # it comes before the code cache does
                CodeCache(Memory(self._memory.read), self._jvm)
                self._counter = _find_unloaded(self._memory, self._jvm)
            return JavaReading(self._memory, self._jvm, self._counter)
        except LayoutError as error:
            raise NotSupportedError(_FRAMES, str(error)) from None

    def close(self) -> None:
        """Close the memory; again is harmless."""
        self._memory.close()


def _find_unloaded(memory: ProcessMemory, jvm: Jvm) -> int:
    """Return the address of the number of classes that a JVM has unloaded; 0: it keeps none that
    can be found (-XX:-UsePerfData).
    """
    now = Memory(memory.read)
    try:
        start, size = now.number(jvm.addresses.counters), now.number(jvm.addresses.counters_size)
        at = find_counter(now.bytes(start, min(size, _MOST_COUNTERS)), _UNLOADED)
    except UnreadableError:
        return 0
    return 0 if at is None else start + at


def find_java(pid: int) -> JavaProcess | None:
    """The JVM of a process; None: it runs none, or has ended.

    Raises:
        KernelError: the process is another user's.
        NotSupportedError: a JVM whose frames are not read; the message says why.
    """
    mapped = find_library(pid)
    if mapped is None:
        return None
    if os.uname().machine != X86_64.name:
        raise NotSupportedError(_FRAMES, "they are read on x86_64 only")
    memory = open_process_memory(pid)
    if memory is None:
        return None
    try:
        return JavaProcess(memory, _describe(memory, mapped, pid), mapped.start)
    except (FormatError, OSError, LayoutError) as error:
        memory.close()
        raise NotSupportedError(_FRAMES, str(error)) from None
    except BaseException:
        memory.close()
        raise


def _describe(memory: ProcessMemory, mapped: Mapping, pid: int) -> Jvm:
    """Return the description of a JVM, which is the same in all processes of its file."""
    key = _key(mapped, pid)
    if key in _known:
        start, jvm = _known[key]
        moved = (address + mapped.start - start for address in jvm.addresses)
        return jvm._replace(addresses=Addresses(*moved))
    symbols = read_exports(mapped, pid, ALL_EXPORTS)
    if not symbols:
        raise LayoutError(f"{mapped.file.path} does not describe a HotSpot JVM")
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    jvm = read_jvm(CachedMemory(memory.read), symbols)
    _known[key] = mapped.start, jvm
    return jvm


def _key(mapped: Mapping, pid: int) -> _Key:
    fd = open_mapped(mapped, (pid,))
    try:
        status = os.fstat(fd)
    finally:
        os.close(fd)
    return Identity.of(status), mapped.file.inode, mapped.offset, proc.other_user(pid)
