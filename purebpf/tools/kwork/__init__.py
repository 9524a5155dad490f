"""Interrupts, softirqs and other work of the kernel itself: `purebpf kwork`, and as a library:

    from purebpf.tools.kwork import Kwork, KworkOptions

    with Kwork(KworkOptions(kinds=("softirq", "work"), duration_s=5)) as kwork:
        kwork.wait()
        for row in kwork.stop().rows:            # a KworkRow for each function
            print(row.kind, row.name, row.runs, row.total_ns, row.delay_ns)

Names are imported when they are first used (PEP 562), so that --help answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.lazy import names

if TYPE_CHECKING:
    from purebpf.tools.kwork.request import KworkOptions
    from purebpf.tools.kwork.rows import KworkRow, Result
    from purebpf.tools.kwork.session import Kwork

__all__ = ["Kwork", "KworkOptions", "KworkRow", "Result"]

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted
    __getattr__ = names(
        __name__,
        {
            "Kwork": "purebpf.tools.kwork.session.Kwork",
            "KworkOptions": "purebpf.tools.kwork.request.KworkOptions",
            "Result": "purebpf.tools.kwork.rows.Result",
            "KworkRow": "purebpf.tools.kwork.rows.KworkRow",
        },
    )
