"""Processes as they start programs and end: `purebpf exec`, and as a library:

    from purebpf.tools.exec import ExecOptions, Processes

    with Processes(ExecOptions(duration_s=5)) as processes:
        while not processes.wait():
            for event in processes.drain():     # Executed, Ended or Refused
                print(event)

Names are imported when they are first used (PEP 562), so that --help answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.lazy import names

if TYPE_CHECKING:
    from purebpf.tools.exec.request import ExecOptions
    from purebpf.tools.exec.session import Processes

__all__ = ["ExecOptions", "Processes"]

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted
    __getattr__ = names(
        __name__,
        {
            "ExecOptions": "purebpf.tools.exec.request.ExecOptions",
            "Processes": "purebpf.tools.exec.session.Processes",
        },
    )
