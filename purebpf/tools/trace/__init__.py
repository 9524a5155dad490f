"""System calls as they happen: `purebpf trace`, and as a library:

    from purebpf.tools.trace import TraceOptions, Traces

    with Traces(TraceOptions(duration_s=5, events=("%file",))) as traces:
        while not traces.wait():
            for event in traces.drain():     # of purebpf.tools.trace.events
                print(event)

Names are imported when they are first used (PEP 562), so that --help answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.lazy import names

if TYPE_CHECKING:
    from purebpf.tools.trace.request import TraceOptions
    from purebpf.tools.trace.session import Traces

__all__ = ["TraceOptions", "Traces"]

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted
    __getattr__ = names(
        __name__,
        {
            "TraceOptions": "purebpf.tools.trace.request.TraceOptions",
            "Traces": "purebpf.tools.trace.session.Traces",
        },
    )
