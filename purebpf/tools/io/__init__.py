"""Latency of block devices: `purebpf io`, and as a library:

    from purebpf.tools.io import Io, IoOptions

    with Io(IoOptions(slower_ms=10, duration_s=5)) as requests:
        while not requests.wait():
            for request in requests.drain():     # a purebpf.tools.io.event.Request that was slow
                print(request.disk, request.took_ns, request.file)
        requests.stop()
        for row in requests.rows:                # a purebpf.tools.io.event.IoRow for each device
            print(row.disk, row.op, row.requests)

Names are imported when they are first used (PEP 562), so that --help answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.lazy import names

if TYPE_CHECKING:
    from purebpf.tools.io.event import IoRow, Request
    from purebpf.tools.io.request import IoOptions
    from purebpf.tools.io.session import Io

__all__ = ["Io", "IoOptions", "IoRow", "Request"]

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted
    __getattr__ = names(
        __name__,
        {
            "Io": "purebpf.tools.io.session.Io",
            "IoOptions": "purebpf.tools.io.request.IoOptions",
            "Request": "purebpf.tools.io.event.Request",
            "IoRow": "purebpf.tools.io.event.IoRow",
        },
    )
