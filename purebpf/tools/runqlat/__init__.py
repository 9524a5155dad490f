"""The times that tasks wait for a CPU: `purebpf runqlat`, and as a library:

    from purebpf.tools.runqlat import Spans

    with Spans("run_queue", by="pid") as spans:     # or "on_cpu", "off_cpu": purebpf.tools.cpudist
        spans.start()

Names are imported when they are first used (PEP 562), so that --help answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.lazy import names

if TYPE_CHECKING:
    from purebpf.observe.instruments.latency_histograms import Spans

__all__ = ["Spans"]

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted
    __getattr__ = names(__name__, {"Spans": "purebpf.observe.instruments.latency_histograms.Spans"})
