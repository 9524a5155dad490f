"""Off-CPU time: `purebpf offcpu`, and as a library:

    from purebpf.tools.offcpu import OffCpu, OffCpuOptions

    with OffCpu(OffCpuOptions()) as waiting:
        work()
        profile = waiting.stop()      # a purebpf.report.Profile, in nanoseconds

Names are imported when they are first used (PEP 562), so that --help answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.lazy import names

if TYPE_CHECKING:
    from purebpf.tools.offcpu.request import OffCpuOptions
    from purebpf.tools.offcpu.session import OffCpu

__all__ = ["OffCpu", "OffCpuOptions"]

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted
    __getattr__ = names(
        __name__,
        {
            "OffCpu": "purebpf.tools.offcpu.session.OffCpu",
            "OffCpuOptions": "purebpf.tools.offcpu.request.OffCpuOptions",
        },
    )
