"""Shows metrics: an address that Prometheus scrapes, and a file for node_exporter."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from typing import Self

from purebpf.agent.config import ConfigError, Metrics
from purebpf.agent.metrics.counts import Counts
from purebpf.agent.write_in import write_in
from purebpf.closable import Closing
from purebpf.errors import KernelError

__all__ = ["Exporter"]


class Exporter(Closing):
    """Serves from when it is entered, and writes the file at each `window`.

    Args:
        wanted: section [metrics] of the configuration.
        window_s: the length of a window.
        state: of the agent: a `families.State`.

    Attributes:
        counts: what windows are added to.
        port: where it listens; 0: nowhere.

    Raises, when it is entered; nothing stays open then:
        ConfigError: prometheus_client is not installed.
        KernelError: the address cannot be bound, or the kernel refused a program.
    """

    def __init__(self, wanted: Metrics, window_s: float, state: Callable[[], object]) -> None:
        self._wanted, self._window_s, self._state = wanted, window_s, state
        self._owned = ExitStack()
        self.counts = Counts()
        self.port = 0

    def __enter__(self) -> Self:
        try:
            from prometheus_client import CollectorRegistry
        except ModuleNotFoundError:
            raise ConfigError(
                "[metrics] needs prometheus_client: pip install 'purebpf[agent]'"
            ) from None
        from purebpf.agent.metrics.families import Families
        from purebpf.agent.metrics.kernel_counts import KernelCounts

        with ExitStack() as stack:
            self._kernel = stack.enter_context(KernelCounts(self._wanted, self._window_s))
            self._registry = CollectorRegistry()
            self._registry.register(
                Families(self.counts, self._state, self._kernel.distributions)  # type: ignore[arg-type]
            )
            if self._wanted.listen:
                self._listen(stack)
            self._owned = stack.pop_all()
        return self

    def _listen(self, stack: ExitStack) -> None:
        from prometheus_client import start_http_server

        host, _, port = self._wanted.listen.rpartition(":")
        wanted = self._wanted
        tls = {}
        if wanted.certificate:
            tls = {"certfile": wanted.certificate, "keyfile": wanted.key}
        if wanted.client_ca:
            tls |= {"client_cafile": wanted.client_ca, "client_auth_required": True}  # type: ignore[dict-item]
        try:
            server, thread = start_http_server(
                int(port), host.strip("[]"), self._registry, **tls  # type: ignore[arg-type]
            )  # fmt: skip
        except OSError as error:
            raise KernelError("bind(2)", error.errno or 0, f"metrics at {wanted.listen}") from error
        self.port = server.server_address[1]
        stack.callback(thread.join)
        stack.callback(server.server_close)
        stack.callback(server.shutdown)

    def window(self) -> None:
        """A window is over: take what the kernel counted, and write the file.

        Raises:
            KernelError: a map could not be read.
            OSError: the file cannot be written.
        """
        self._kernel.take_calls(self.counts)
        if self._wanted.textfile:
            from prometheus_client import generate_latest

            folder, name = os.path.split(self._wanted.textfile)
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:  # node_exporter is another user, who may own the directory: Debian's does
                write_in(fd, name, generate_latest(self._registry), 0o644)
            finally:
                os.close(fd)

    def close(self) -> None:
        """Stop; again is harmless."""
        self._owned.close()
