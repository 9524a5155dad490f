"""Files as they are opened: `purebpf open`, and as a library:

    from purebpf.tools.open import OpenOptions, Opens

    with Opens(OpenOptions(duration_s=5)) as opens:
        while not opens.wait():
            for event in opens.drain():     # a purebpf.tools.open.events.Opened
                print(event)

Names are imported when they are first used (PEP 562), so that --help answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from purebpf.lazy import names

if TYPE_CHECKING:
    from purebpf.tools.open.request import OpenOptions
    from purebpf.tools.open.session import Opens

__all__ = ["OpenOptions", "Opens"]

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted
    __getattr__ = names(
        __name__,
        {
            "OpenOptions": "purebpf.tools.open.request.OpenOptions",
            "Opens": "purebpf.tools.open.session.Opens",
        },
    )
