"""Memory by user stack: `purebpf mem`, and as a library:

    from purebpf.tools.mem import Memory, MemOptions

    with Memory(MemOptions(pids=(185,))) as memory:
        work()
        use = memory.stop()
    use.unfreed      # a purebpf.report.Profile, in bytes, as are allocated and grown
    use.faults       # one in page faults

Names are imported when they are first used (PEP 562), so that --help answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.lazy import names

if TYPE_CHECKING:
    from purebpf.tools.mem.profiles import MemoryUse
    from purebpf.tools.mem.request import MemOptions
    from purebpf.tools.mem.session import Memory

__all__ = ["MemOptions", "Memory", "MemoryUse"]

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted
    __getattr__ = names(
        __name__,
        {
            "Memory": "purebpf.tools.mem.session.Memory",
            "MemoryUse": "purebpf.tools.mem.profiles.MemoryUse",
            "MemOptions": "purebpf.tools.mem.request.MemOptions",
        },
    )
