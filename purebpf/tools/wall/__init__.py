"""The wall clock of threads: `purebpf wall`, and as a library:

    from purebpf.tools.wall import Wall, WallOptions

    with Wall(WallOptions(pids=(185,))) as clock:
        work()
        profile, threads = clock.stop()   # a purebpf.report.Profile, in nanoseconds

Names are imported when they are first used (PEP 562), so that --help answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.lazy import names

if TYPE_CHECKING:
    from purebpf.tools.wall.request import WallOptions
    from purebpf.tools.wall.session import Wall

__all__ = ["Wall", "WallOptions"]

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted
    __getattr__ = names(
        __name__,
        {
            "Wall": "purebpf.tools.wall.session.Wall",
            "WallOptions": "purebpf.tools.wall.request.WallOptions",
        },
    )
