"""The wall clock of threads: `python -m purebpf.wall`, and as a library:

    from purebpf.wall import Wall, Options

    with Wall(Options(pids=(185,))) as clock:
        work()
        profile, threads = clock.stop()   # a purebpf.report.Profile, in nanoseconds

Names are imported when they are first used (PEP 562), so that --help answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from purebpf.wall.options import Options
    from purebpf.wall.session import Wall

__all__ = ["Options", "Wall"]

_HOMES = {"Wall": "purebpf.wall.session", "Options": "purebpf.wall.options"}

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name not in _HOMES:
            raise AttributeError(f"module 'purebpf.wall' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return value
