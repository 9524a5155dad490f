"""The content of an object file, and a kernel's view of it: `purebpf inspect`.

    from purebpf.tools.inspect import describe

    report = describe(purebpf.read_object("tool.bpf.o"), [purebpf.kernel_btf()])
    for relocation in report.core:
        print(relocation.function, relocation.what, relocation.answer)

Names are imported when they are first used (PEP 562), so that --help answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.lazy import names

if TYPE_CHECKING:
    from purebpf.tools.inspect.model import Report, describe
    from purebpf.tools.inspect.request import InspectOptions

__all__ = ["InspectOptions", "Report", "describe"]

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted
    __getattr__ = names(
        __name__,
        {
            "InspectOptions": "purebpf.tools.inspect.request.InspectOptions",
            "Report": "purebpf.tools.inspect.model.Report",
            "describe": "purebpf.tools.inspect.model.describe",
        },
    )
