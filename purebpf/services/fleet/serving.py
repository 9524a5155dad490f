"""Runs the hub, or the pages, until a signal stops it."""

from __future__ import annotations

import os
import signal
import socket
import stat
from collections.abc import Callable
from typing import TYPE_CHECKING

from purebpf.errors import KernelError, PurebpfError
from purebpf.services.fleet.request import FleetOptions
from purebpf.services.fleet.stores.opening import open_store

if TYPE_CHECKING:
    from starlette.applications import Starlette

__all__ = ["ServingError", "serve_hub", "serve_pages"]

_MOST_CONNECTIONS = 1024
_BACKLOG = 128
"""As many are taken before one of them is looked at: fewer than descriptors are left."""
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_MOST_TOKENS = 1 << 20
_ENDING = (signal.SIGINT, signal.SIGTERM)


class ServingError(PurebpfError):
    """A server cannot be started as requested; the text says why."""


def serve_hub(options: FleetOptions, say: Callable[[str], object]) -> None:
    """Receive windows until SIGTERM or Ctrl-C; windows that came by then are stored.

    Raises:
        ServingError: the address is open to others without TLS, or a file cannot be read.
        KernelError: the address cannot be bound.
    """
    from purebpf.services.fleet.hub import Tokens, hub_app
    from purebpf.services.fleet.intake import Intake

    _check_address(options)
    tokens = Tokens(read_tokens(options.tokens) if options.tokens else None)
    store = open_store(options.store)
    store.prepare()
    intake = Intake(store, pause_s=options.pause_s, say=say)
    with _listen(*options.listen) as listener:
        say(f"store {store.root}, taking windows at {_address(listener, options)}")
        _run(hub_app(intake, tokens, say), listener, options, say)
    done = intake.tally
    say(
        f"{done.deliveries} windows stored, {done.rows} rows, {done.nbytes} bytes; "
        f"{done.repeated} came twice"
    )


def serve_pages(options: FleetOptions, say: Callable[[str], object]) -> None:
    """Show pages until SIGTERM or Ctrl-C.

    Raises:
        ServingError, KernelError: as `serve_hub`.
        StoreError: there is no such store.
    """
    from purebpf.services.fleet.web.access import Access
    from purebpf.services.fleet.web.app import fleet_app
    from purebpf.services.fleet.web.question_pool import QuestionPool

    _check_address(options)
    hosts = read_tokens(options.tokens) if options.tokens else {}
    readers = [token for token, host in hosts.items() if not host]
    if hosts and not readers:
        raise ServingError(f"every token of {options.tokens} is a host's, for sending: none reads")
    store = open_store(options.store)
    store.require()
    with _listen(*options.listen) as listener:
        port = listener.getsockname()[1]
        access = Access(readers, port=port, is_secure=bool(options.certificate))
        token = f"/?token={access.made_up}" if access.made_up else "/"
        say(f"store {store.root}, pages at {_address(listener, options)}{token}")
        pool = QuestionPool(store)
        _run(fleet_app(pool, access), listener, options, say, pool.end)


def _check_address(options: FleetOptions) -> None:
    host, has_tls = options.listen[0], bool(options.certificate)
    if host not in _LOOPBACK and not has_tls and not options.insecure:
        raise ServingError(
            f"{host} is not this machine, and tokens and stacks would go in the clear. "
            "Use --certificate and --key, or --insecure behind a proxy that has TLS"
        )
    if has_tls != bool(options.key):
        raise ServingError("TLS needs both --certificate and --key")


def _address(listener: socket.socket, options: FleetOptions) -> str:
    host = options.listen[0]
    name = f"[{host}]" if ":" in host else host
    return f"http{'s' if options.certificate else ''}://{name}:{listener.getsockname()[1]}"


def _run(
    app: Starlette,
    listener: socket.socket,
    options: FleetOptions,
    say: Callable[[str], object],
    end: Callable[[], None] = lambda: None,
) -> None:
    """Run until a signal; `end` is called when it comes, before connections are closed."""
    import asyncio

    import uvicorn

    from purebpf.services.fleet.accept_failures import AcceptFailures
    from purebpf.services.fleet.connections import PatientProtocol

    failures = AcceptFailures(say)

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            asyncio.get_running_loop().set_exception_handler(failures)
            await super().startup(sockets)

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            end()
            await super().shutdown(sockets)

    config = uvicorn.Config(
        app,
        http=PatientProtocol,
        log_level="warning",
        access_log=False,
        lifespan="on",
        server_header=False,
        limit_concurrency=_MOST_CONNECTIONS * 8,
        backlog=_BACKLOG,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=30,
        ssl_certfile=options.certificate or None,
        ssl_keyfile=options.key or None,
    )
    # uvicorn raises the signal that ended it once more, for those who were there before
    before = {number: signal.signal(number, lambda *_: None) for number in _ENDING}
    try:
        Server(config).run(sockets=[listener])
    finally:
        failures.report()
        for number, handler in before.items():
            signal.signal(number, handler)


def read_tokens(path: str) -> dict[str, str]:
    """The host of each token of a file: lines `TOKEN [HOST]`, `#` begins a remark.

    Raises:
        ServingError: it cannot be read, others may read it, or it has no token.
    """
    try:
        with open(path, encoding="utf-8") as file:
            mode = os.fstat(file.fileno()).st_mode
            lines = file.read(_MOST_TOKENS).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ServingError(f"the tokens of {path}: {error}") from error
    if stat.S_IMODE(mode) & 0o007:
        raise ServingError(f"everybody may read the tokens of {path}: chmod o= {path}")
    words = [line.partition("#")[0].split() for line in lines]
    if not any(words) or any(len(line) > 2 for line in words):
        raise ServingError(f"{path} has no lines TOKEN [HOST], or others")
    return {line[0]: line[1] if line[1:] else "" for line in words if line}


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_MOST_CONNECTIONS)
    except OSError as error:
        listener.close()
        raise KernelError("bind(2)", error.errno or 0, f"listening on {host}:{port}") from None
    return listener
