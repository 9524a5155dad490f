"""TCP connections as they begin and end: `purebpf tcp`, and as a library:

    from purebpf.tools.tcp import TcpOptions, Tcp

    with Tcp(TcpOptions(duration_s=5)) as connections:
        while not connections.wait():
            for event in connections.drain():     # a purebpf.tools.tcp.event.Event
                print(event.kind, event.remote_address, event.took_ns)
        print(connections.stop().loss)

Names are imported when they are first used (PEP 562), so that --help answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.lazy import names

if TYPE_CHECKING:
    from purebpf.tools.tcp.event import Event
    from purebpf.tools.tcp.request import TcpOptions
    from purebpf.tools.tcp.session import Tcp

__all__ = ["Event", "Tcp", "TcpOptions"]

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted
    __getattr__ = names(
        __name__,
        {
            "Event": "purebpf.tools.tcp.event.Event",
            "TcpOptions": "purebpf.tools.tcp.request.TcpOptions",
            "Tcp": "purebpf.tools.tcp.session.Tcp",
        },
    )
