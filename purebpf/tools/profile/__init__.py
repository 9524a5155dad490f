"""The CPU profiler: `purebpf profile`, and as a library:

    from purebpf.tools.profile import ProfileOptions, Profiler

    with Profiler(ProfileOptions(frequency=99)) as profiler:
        work()
        profile = profiler.stop()      # a purebpf.report.Profile

`WindowProfiler` gives one profile a window for as long as it runs, and forgets the one before.

Names are imported when they are first used (PEP 562), so that --help answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.lazy import names

if TYPE_CHECKING:
    from purebpf.tools.profile.request import ProfileOptions
    from purebpf.tools.profile.session import Profiler
    from purebpf.tools.profile.windows import WindowProfiler

__all__ = ["ProfileOptions", "Profiler", "WindowProfiler"]

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted
    __getattr__ = names(
        __name__,
        {
            "ProfileOptions": "purebpf.tools.profile.request.ProfileOptions",
            "Profiler": "purebpf.tools.profile.session.Profiler",
            "WindowProfiler": "purebpf.tools.profile.windows.WindowProfiler",
        },
    )
