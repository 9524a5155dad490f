"""TCP connections as they begin and end: `purebpf tcp`, and as a library:

    from purebpf.tcp import Options, Tcp

    with Tcp(Options(duration_s=5)) as connections:
        while not connections.wait():
            for event in connections.drain():     # a purebpf.tcp.event.Event
                print(event.kind, event.remote_address, event.took_ns)
        print(connections.stop().loss)

Names are imported when they are first used (PEP 562), so that --help answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.lazy import names

if TYPE_CHECKING:
    from purebpf.tcp.event import Event
    from purebpf.tcp.request import Options
    from purebpf.tcp.session import Tcp

__all__ = ["Event", "Options", "Tcp"]

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted
    __getattr__ = names(
        __name__,
        {
            "Event": "purebpf.tcp.event.Event",
            "Options": "purebpf.tcp.request.Options",
            "Tcp": "purebpf.tcp.session.Tcp",
        },
    )
