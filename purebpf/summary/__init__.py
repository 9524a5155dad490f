"""The system call summary: `purebpf summary`, and as a library:

    from purebpf.summary import Options, Summary

    with Summary(Options(mode="process")) as summary:
        work()
        table = summary.stop()      # a purebpf.summary.table.Table

Names are imported when they are first used (PEP 562), so that --help answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.lazy import names

if TYPE_CHECKING:
    from purebpf.summary.request import Options
    from purebpf.summary.session import Summary

__all__ = ["Options", "Summary"]

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted
    __getattr__ = names(
        __name__,
        {
            "Options": "purebpf.summary.request.Options",
            "Summary": "purebpf.summary.session.Summary",
        },
    )
