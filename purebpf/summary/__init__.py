"""The system call summary: `python -m purebpf.summary`, and as a library:

    from purebpf.summary import Options, Summary

    with Summary(Options(mode="process")) as summary:
        work()
        table = summary.stop()      # a purebpf.summary.table.Table

Names are imported when they are first used (PEP 562), so that --help answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from purebpf.summary.options import Options
    from purebpf.summary.session import Summary

__all__ = ["Options", "Summary"]

_HOMES = {"Options": "purebpf.summary.options", "Summary": "purebpf.summary.session"}

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name not in _HOMES:
            raise AttributeError(f"module 'purebpf.summary' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return value
