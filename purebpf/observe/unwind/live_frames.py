"""Frame pointers in the memory of a running process."""

from __future__ import annotations

import struct

from purebpf.errors import KernelError
from purebpf.syscall.process_memory import open_process_memory

__all__ = ["follow_live_frames"]

_FRAME = struct.Struct("<QQ")
_MOST = 64


def follow_live_frames(tgid: int, fp: int) -> list[int]:
    """Return the return addresses to which a chain of frame pointers leads; [] if there are none.

    The process runs on meanwhile, so these are only guesses at the code that it returns to.

    Args:
        tgid: the process, in our pid namespace.
        fp: the first frame pointer.
    """
    try:
        memory = open_process_memory(tgid)
    except KernelError:
        return []
    if memory is None:
        return []
    found: list[int] = []
    with memory:
        while fp and not fp & 7 and len(found) < _MOST:
            data = memory.read(fp, _FRAME.size)
            if len(data) < _FRAME.size:
                break
            fp, address = _FRAME.unpack(data)
            found.append(address)
    return found
