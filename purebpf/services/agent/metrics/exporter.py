"""Shows metrics: an address that Prometheus scrapes, and a file for node_exporter."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Self

from purebpf.closable import Closing
from purebpf.errors import KernelError
from purebpf.http.server import HttpServer, Request
from purebpf.services.agent.config import ConfigError, Metrics
from purebpf.services.agent.metrics.counts import Counts
from purebpf.services.agent.write_in import write_in

if TYPE_CHECKING:
    import socket
    from ssl import SSLContext

__all__ = ["Exporter"]


class Exporter(Closing):
    """Serves from when it is entered, and writes the file at each `window`.

    Args:
        wanted: section [metrics] of the configuration.
        window_s: the length of a window.
        state: of the agent: a `families.State`.

    Attributes:
        counts: windows are added to it.
        port: where it listens; 0: nowhere.

    Raises, when it is entered; nothing stays open then:
        ConfigError: prometheus_client is not installed, or a certificate is damaged.
        KernelError: the address cannot be bound, a certificate cannot be read, or the kernel
            refused a program.
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
        from purebpf.services.agent.metrics.families import Families
        from purebpf.services.agent.metrics.kernel_counts import KernelCounts

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
        from prometheus_client import make_wsgi_app

        # the server of prometheus_client takes any number of connections, and waits for handshakes
        wanted = self._wanted
        host, _, port = wanted.listen.rpartition(":")
        tls = _tls(wanted) if wanted.certificate else None
        app = make_wsgi_app(self._registry)

        def answer(head: bytes, connection: socket.socket) -> None:
            _Scrape(head, connection, app).answer()

        try:
            server = HttpServer((host.strip("[]"), int(port)), lambda _: True, answer, tls)
        except OSError as error:
            raise KernelError("bind(2)", error.errno or 0, f"metrics at {wanted.listen}") from error
        self.port = stack.enter_context(server).address[1]

    def window(self) -> None:
        """At the end of a window, read the kernel's counts, and write the file.

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


class _Scrape(Request):
    """One request for the metrics, answered by an application of WSGI (PEP 3333)."""

    def __init__(self, head: bytes, connection: socket.socket, app: Callable[..., Any]) -> None:
        super().__init__(head, connection)
        self._app = app

    def get(self) -> None:
        """Answer in the format, and packed, as the scraper wants it."""
        path, _, query = self.path.partition("?")
        asked = {
            "REQUEST_METHOD": "GET",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "HTTP_ACCEPT": self.headers.get("Accept", ""),
            "HTTP_ACCEPT_ENCODING": self.headers.get("Accept-Encoding", ""),
        }
        content = b"".join(self._app(asked, self._begin))
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _begin(self, status: str, headers: Iterable[tuple[str, str]]) -> None:
        self.send_response(HTTPStatus(int(status[:3])))
        for name, value in headers:
            self.send_header(name, value)


def _tls(wanted: Metrics) -> SSLContext:
    """Raises ConfigError or KernelError: a file is damaged, or cannot be read."""
    from ssl import CERT_REQUIRED, PROTOCOL_TLS_SERVER, SSLContext, SSLError

    files = "certificate, key or client_ca of [metrics]"
    context = SSLContext(PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(wanted.certificate, wanted.key)
        if wanted.client_ca:
            context.load_verify_locations(wanted.client_ca)
            context.verify_mode = CERT_REQUIRED
    except SSLError as error:
        raise ConfigError(f"{files}: {error.reason or error}") from None
    except OSError as error:
        raise KernelError("open", error.errno or 0, files) from None
    return context
