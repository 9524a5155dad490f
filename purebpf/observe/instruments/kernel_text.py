"""The kernel's code as it runs, with the instructions that it has patched.

Needs mappable arrays (Linux 5.5) and test runs of raw tracepoints (Linux 5.10, commit
1b4d60ec162f), but neither /proc/kcore nor a vmlinux. See bpf_src/kernel_text.bpf.c.
"""

from __future__ import annotations

import struct
from contextlib import ExitStack

from purebpf import objects
from purebpf.closable import Closing
from purebpf.loader.load.load import load

__all__ = ["KernelText"]

_CHUNK = 1 << 16


class KernelText(Closing):
    """Reads the code of the kernel, its modules and its BPF programs by address.

    Raises:
        KernelError: the kernel refused the program; reading needs CAP_BPF and CAP_PERFMON.
    """

    def __init__(self) -> None:
        with ExitStack() as undo:
            loaded = undo.enter_context(load(objects.spec("kernel_text")))
            self._program = loaded.programs["read_text"]
            self._chunk = loaded.maps["text"].mmap(writable=False)
            undo.callback(self._chunk.close)
            self._closing = undo.pop_all()

    def read(self, address: int, size: int) -> bytes:
        """Return the code at an address; fewer bytes, in steps of 64 KiB, where it ends.

        Raises:
            KernelError: the kernel refused to run the program.
            ValueError: it is closed.
        """
        pieces = []
        for start in range(address, address + size, _CHUNK):
            wanted = min(_CHUNK, address + size - start)
            if self._program.test_run(ctx=struct.pack("=QQ", start, wanted)).retval:
                break
            pieces.append(bytes(self._chunk.view[:wanted]))
        return b"".join(pieces)

    def close(self) -> None:
        """Unload; again is harmless."""
        self._closing.close()
