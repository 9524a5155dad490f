"""Tasks of trio that wait for a ring, beside `purebpf.loader.rings.waiters` for asyncio."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from purebpf.loader.host.fork_guard import OwnerProcess
from purebpf.syscall.descriptor import Descriptor

if TYPE_CHECKING:
    import trio

__all__ = ["TrioWaiters", "runs_trio"]


def runs_trio() -> bool:
    """Return True if trio runs this task; anyio may have started it."""
    trio_module = sys.modules.get("trio")
    return trio_module is not None and bool(trio_module.lowlevel.in_trio_run())


class TrioWaiters:
    """The tasks that wait for one ring: each watches its own duplicate."""

    def __init__(self) -> None:
        self._scopes: dict[trio.CancelScope, trio.lowlevel.TrioToken] = {}
        self._owner_process = OwnerProcess()

    async def readable(self, fileno: Callable[[], int], came: Callable[[], bool]) -> None:
        """As `Waiters.readable`."""
        import trio

        scope = trio.CancelScope()
        self._scopes[scope] = trio.lowlevel.current_trio_token()
        try:
            copy = Descriptor(os.dup(fileno()))
            try:
                if came():
                    await trio.lowlevel.checkpoint()
                else:
                    with scope:
                        await trio.lowlevel.wait_readable(copy.fileno())
            finally:
                copy.close()
        finally:
            del self._scopes[scope]

    def wake(self) -> None:
        """Wake all, from any thread."""
        if not self._owner_process.is_here:
            return  # they are the parent's
        import trio

        for scope, token in tuple(self._scopes.items()):
            with suppress(trio.RunFinishedError):
                token.run_sync_soon(scope.cancel)
