"""The CPU profiler: `python -m purebpf.profile`, and as a library:

    from purebpf.profile import Options, Profiler

    with Profiler(Options(frequency=99)) as profiler:
        work()
        profile = profiler.stop()      # a purebpf.report.Profile

Names are imported when they are first used (PEP 562), so that --help answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from purebpf.profile.options import Options
    from purebpf.profile.session import Profiler

__all__ = ["Options", "Profiler"]

_HOMES = {"Options": "purebpf.profile.options", "Profiler": "purebpf.profile.session"}

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name not in _HOMES:
            raise AttributeError(f"module 'purebpf.profile' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return value
