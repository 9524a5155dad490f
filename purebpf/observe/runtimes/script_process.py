"""`ScriptProcess`: the base class of processes whose interpreter is not CPython.

Code that follows interpreters asks whether a process is one of these, and then needs none of the
modules that read the language: only processes that run it import them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from purebpf.closable import Closing
from purebpf.runtimes.interpreted import MAX_FRAMES, InterpretedStack
from purebpf.runtimes.memory import MOST_READS
from purebpf.syscall.process_memory import ProcessMemory, open_process_memory

if TYPE_CHECKING:
    from purebpf.runtimes.cpython.lines import LineTable
    from purebpf.symbols.code_range import CodeRange

__all__ = ["ScriptProcess"]


class ScriptProcess(Closing):
    """A process with an interpreter of scripts: PHP's, whose first thread runs them, or Ruby's.

    Attributes:
        language: its name, "PHP" or "Ruby".
        version: (8, 2).
        is_free_threaded: False: it has no GIL to be without.
        loop: the addresses of the function that runs scripts.
        path: the file of the interpreter, as the process sees it.
        lines: how the words of its frames give their lines.
    """

    language: str
    version: tuple[int, int]
    is_free_threaded = False
    loop: tuple[CodeRange, ...]
    path: str
    lines: LineTable
    _memory: ProcessMemory

    @property
    def is_stuck(self) -> bool:
        """True if its memory cannot be read any more: see `ProcessMemory`."""
        return self._memory.is_stuck

    def read(self, address: int, size: int) -> bytes:
        """Bytes of the process; fewer where nothing is mapped, none when it has ended."""
        return self._memory.read(address, size)

    def in_child(self, pid: int) -> Self | None:
        """Return the same interpreter in a process that this one forked; None: it has ended.

        Raises:
            KernelError: EACCES or EPERM, the process is another user's.
        """
        memory = open_process_memory(pid)
        if memory is None:
            return None
        child = object.__new__(type(self))
        vars(child).update(vars(self), _memory=memory)  # every address is the same in it
        return child

    def pack(self, identity: int, generation: int) -> bytes:
        """Return the struct python_process of bpf_src/include/python_layout.h.

        Args:
            identity: of the program that the process executed; 0: not known.
            generation: the number of this interpreter in the names of its frames.

        Raises:
            NotSupportedError: BPF cannot read it.
        """
        raise NotImplementedError

    def describe(
        self, raw: bytes, lengths: tuple[int, int, int], strings: tuple[int, int, int]
    ) -> tuple[str, str]:
        """Return the name and the file of a function that BPF met; "" for both if it has neither.

        Args:
            raw: the texts of a record of `python_names`, one after another.
            lengths: their whole lengths: of the function's name, its file, and its class.
            strings: their addresses; 0 for one that the function does not have.
        """
        raise NotImplementedError

    def frames(
        self,
        pointer: int,
        *,
        is_first: bool,
        most_reads: int = MOST_READS,
        most: int = MAX_FRAMES,
    ) -> InterpretedStack | None:
        """Return the frames of a thread as they are now; None: the interpreter does not know it.

        Args:
            pointer: the thread pointer.
            is_first: whether it is the first thread of the process.
            most_reads: pieces of pages that are read.
            most: frames.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Close the memory; again is harmless."""
        self._memory.close()
