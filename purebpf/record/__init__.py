"""The recorder: `python -m purebpf.record`, and as a library:

    from purebpf.record import Options, Recorder

    with Recorder(Options(pids=(1234,), callchains=True, output="perf.data")) as recorder:
        work()
        recorded = recorder.stop()      # the file is there now

Names are imported when they are first used (PEP 562), so that --help answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from purebpf.record.options import EventOption, Options
    from purebpf.record.session import Recorder

__all__ = ["EventOption", "Options", "Recorder"]

_HOMES = {
    "EventOption": "purebpf.record.options",
    "Options": "purebpf.record.options",
    "Recorder": "purebpf.record.session",
}

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name not in _HOMES:
            raise AttributeError(f"module 'purebpf.record' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return value
