"""The system call summary: `purebpf summary`, and as a library:

    from purebpf.tools.summary import SummaryOptions, Summary

    with Summary(SummaryOptions(mode="process")) as summary:
        work()
        table = summary.stop()      # a purebpf.tools.summary.table.Table

Names are imported when they are first used (PEP 562), so that --help answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.lazy import names

if TYPE_CHECKING:
    from purebpf.tools.summary.request import SummaryOptions
    from purebpf.tools.summary.session import Summary

__all__ = ["Summary", "SummaryOptions"]

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted
    __getattr__ = names(
        __name__,
        {
            "SummaryOptions": "purebpf.tools.summary.request.SummaryOptions",
            "Summary": "purebpf.tools.summary.session.Summary",
        },
    )
