"""`read_proven`: a code object that BPF could not read, if it is the one that ran at the sample.

The kernel moves memory to make huge pages of it, and for that moment BPF, which cannot wait, reads
nothing. Reading it later proves nothing: the code object may be gone, and another one in its place.
From CPython 3.12 on, each has a number, `co_version`, and numbers only grow. So if the object now
in memory was numbered before the sample, it was there at the sample. Before 3.12 nothing proves it,
except for code objects in the data of the interpreter's own file, which are never freed.
"""

from __future__ import annotations

from purebpf.observe.runtimes.cpython.interpreter_table import Interpreter
from purebpf.observe.runtimes.script_process import ScriptProcess
from purebpf.runtimes.cpython.code_objects import Code, CodeObjects
from purebpf.runtimes.cpython.layout import NONE
from purebpf.runtimes.memory import Memory, UnreadableError
from purebpf.tuples import NamedTuple

__all__ = ["Deferred", "read_proven"]

_HALF, _OVERFLOW = (1 << 32) - 1, (1 << 16) - 1


class Deferred(NamedTuple):
    """A code object to read.

    Attributes:
        address: where it was at the sample.
        least, most: its version is from here to there; 0: no number is.
    """

    address: int
    least: int
    most: int


def read_proven(interpreter: Interpreter, deferred: Deferred) -> Code | None:
    """The code object; None: it cannot be read, or may be another one than at the sample.

    Args:
        interpreter: of the process.
        deferred: the facts that BPF sent at the sample.
    """
    process, address = interpreter.process, deferred.address
    if isinstance(process, ScriptProcess):
        return None  # BPF defers nothing of these
    layout = process.layout
    memory = Memory(process.read)
    codes = CodeObjects(interpreter.version, layout, memory)
    try:
        if process.is_in_data(address):
            return codes.read(address)
        if layout.code_version == NONE or process.is_free_threaded:
            return None
        version = _living_version(memory, address, layout.code_version)
        if not version or not deferred.least <= version <= deferred.most:
            return None
        code = codes.read(address)
        # still alive: so were its name and its file, which it keeps
        return code if _living_version(memory, address, layout.code_version) == version else None
    except UnreadableError:
        return None


def _living_version(memory: Memory, address: int, at: int) -> int:
    """The version of a code object; 0: it was freed.

    Its count of references is 0 then, or an allocator has put an address over it. A real one has 32
    bits, and no overflow in the next 16 (PyObject of 3.14; before they are 0).
    """
    references = memory.number(address)
    is_alive = references & _HALF and not references >> 32 & _OVERFLOW
    return memory.number(address + at, 4) if is_alive else 0
