"""The recorder: `purebpf record`, and as a library:

    from purebpf.tools.record import RecordOptions, Recorder

    with Recorder(RecordOptions(pids=(1234,), callchains=True, output="perf.data")) as recorder:
        work()
        recorded = recorder.stop()      # the file is there now

Names are imported when they are first used (PEP 562), so that --help answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.lazy import names

if TYPE_CHECKING:
    from purebpf.tools.record.request import EventOption, RecordOptions
    from purebpf.tools.record.session import Recorder

__all__ = ["EventOption", "RecordOptions", "Recorder"]

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted
    __getattr__ = names(
        __name__,
        {
            "EventOption": "purebpf.tools.record.request.EventOption",
            "RecordOptions": "purebpf.tools.record.request.RecordOptions",
            "Recorder": "purebpf.tools.record.session.Recorder",
        },
    )
