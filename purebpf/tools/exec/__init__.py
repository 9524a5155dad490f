"""Processes as they start programs and end: `purebpf exec`, and as a library:

    from purebpf.tools.exec import Options, Processes

    with Processes(Options(duration_s=5)) as processes:
        while not processes.wait():
            for event in processes.drain():     # Executed, Ended or Refused
                print(event)

Names are imported when they are first used (PEP 562), so that --help answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.lazy import names

if TYPE_CHECKING:
    from purebpf.tools.exec.request import Options
    from purebpf.tools.exec.session import Processes

__all__ = ["Options", "Processes"]

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted
    __getattr__ = names(
        __name__,
        {
            "Options": "purebpf.tools.exec.request.Options",
            "Processes": "purebpf.tools.exec.session.Processes",
        },
    )
