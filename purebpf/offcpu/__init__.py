"""Off-CPU time: `python -m purebpf.offcpu`, and as a library:

    from purebpf.offcpu import OffCpu, Options

    with OffCpu(Options()) as waiting:
        work()
        profile = waiting.stop()      # a purebpf.report.Profile, in nanoseconds

Names are imported when they are first used (PEP 562), so that --help answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from purebpf.offcpu.options import Options
    from purebpf.offcpu.session import OffCpu

__all__ = ["OffCpu", "Options"]

_HOMES = {"OffCpu": "purebpf.offcpu.session", "Options": "purebpf.offcpu.options"}

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name not in _HOMES:
            raise AttributeError(f"module 'purebpf.offcpu' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return value
