"""The hub: receives OTLP over HTTP from agents and collectors, and stores it.

It answers 200 for data on disk and for nothing else. It keeps no state that another hub, or the
next run, would need.
"""

from __future__ import annotations

import asyncio
import hmac
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from email.utils import parsedate_to_datetime
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from purebpf.services.fleet.decode import RefusedError
from purebpf.services.fleet.intake import FullError, Intake
from purebpf.services.fleet.reading import MOST_BYTES, Body, Reading, TooLargeError

__all__ = ["Tokens", "hub_app"]

PATH = "/v1development/profiles"
_MOST_UNDER_WAY, _MOST_OF_SENDER = 64 << 20, 24 << 20
"""Bytes of all bodies that are not decoded yet, as they were sent."""
_OLDEST_NS = 31 * 86400 * 10**9
_BODY_S = 30.0
_RETRY_S = 10
_TYPES = ("application/x-protobuf", "application/protobuf")


class Tokens:
    """The permitted senders: bearer tokens, each of any host or of one.

    Args:
        hosts: the host of each token; "" for any. None: who sends is not asked.
    """

    def __init__(self, hosts: Mapping[str, str] | None) -> None:
        self._hosts = hosts

    @property
    def are_asked(self) -> bool:
        """True if a message needs a token."""
        return self._hosts is not None

    def host(self, authorization: str) -> str | None:
        """The host that this header is for, "" for any; None: it is not a known one."""
        if self._hosts is None:
            return ""
        given = authorization.removeprefix("Bearer ").strip().encode("utf-8", "replace")
        known_host = None
        for token, host in self._hosts.items():  # all of them: the time says nothing
            if hmac.compare_digest(given, token.encode()):
                known_host = host
        return known_host


def hub_app(intake: Intake, tokens: Tokens, say: Callable[[str], object]) -> Starlette:
    """The application, for a server of ASGI."""
    reading = Reading()
    bodies = _Bodies()

    async def receive(request: Request) -> Response:
        host = tokens.host(request.headers.get("authorization", ""))
        if host is None:
            return _say(HTTPStatus.UNAUTHORIZED, "no token of this hub")
        if request.headers.get("content-type", "").partition(";")[0].strip() not in _TYPES:
            return _say(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"send {_TYPES[0]}")
        encoding = request.headers.get("content-encoding", "identity").strip().lower()
        sender = request.headers.get("authorization", "") if tokens.are_asked else _peer(request)
        try:
            with bodies.one(sender) as one:
                body = await asyncio.wait_for(_body(request, one), _BODY_S)
                now_ns = time.time_ns()
                deliveries = await reading.read(
                    Body(body, encoding),
                    sender,
                    host=host,
                    sent_ns=_sent_ns(request),
                    now_ns=now_ns,
                    oldest_ns=now_ns - _OLDEST_NS,
                )
            await intake.add(deliveries)
        except TimeoutError:
            return _say(HTTPStatus.REQUEST_TIMEOUT, f"the message took more than {_BODY_S:g} s")
        except TooLargeError:
            limit = f"more than {MOST_BYTES >> 20} MiB, unpacked"
            return _say(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, limit)
        except RefusedError as error:
            say(f"refused from {_peer(request)}: {error}")
            return _say(HTTPStatus.BAD_REQUEST, str(error))
        except (FullError, OSError) as error:
            return _say(HTTPStatus.SERVICE_UNAVAILABLE, f"not stored: {error}")
        except ClientDisconnect:
            return Response()
        return Response(b"", media_type=_TYPES[0])

    async def health(_request: Request) -> Response:
        return PlainTextResponse("".join(f"{k} {v}\n" for k, v in intake.tally._asdict().items()))

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        yield
        await intake.finish()

    routes = [
        Route(PATH, receive, methods=["POST"]),
        Route("/health", health, methods=["GET"]),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


class _Bodies:
    """Counts the bytes of bodies under way, of each sender and of all."""

    def __init__(self) -> None:
        self._nbytes = 0
        self._of: Counter[str] = Counter()

    @contextmanager
    def one(self, sender: str) -> Iterator[Callable[[int], None]]:
        """A function to call with the number of bytes that came; they count until the end."""
        mine = 0

        def add(count: int) -> None:
            nonlocal mine
            mine += count
            self._nbytes += count
            self._of[sender] += count
            if self._nbytes > _MOST_UNDER_WAY:
                raise FullError(f"messages of {_MOST_UNDER_WAY >> 20} MiB are under way")
            if self._of[sender] > _MOST_OF_SENDER:
                raise FullError(f"messages of {_MOST_OF_SENDER >> 20} MiB of yours are under way")

        try:
            yield add
        finally:
            self._nbytes -= mine
            self._of[sender] -= mine
            if not self._of[sender]:
                del self._of[sender]


async def _body(request: Request, count: Callable[[int], None]) -> bytes:
    """The body as it was sent; `count` gets the bytes of each piece."""
    body = bytearray()
    async for piece in request.stream():
        if len(body) + len(piece) > MOST_BYTES:
            raise TooLargeError
        count(len(piece))
        body += piece
    return bytes(body)


def _sent_ns(request: Request) -> int:
    """When it was sent, by the sender's clock; 0: it does not say."""
    try:
        return int(parsedate_to_datetime(request.headers["date"]).timestamp() * 1e9)
    except (KeyError, ValueError, TypeError):
        return 0


def _peer(request: Request) -> str:
    return request.client.host if request.client else "?"


def _say(status: HTTPStatus, text: str) -> Response:
    headers = {"Retry-After": str(_RETRY_S)} if status == HTTPStatus.SERVICE_UNAVAILABLE else {}
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    return PlainTextResponse(text + "\n", status, headers)
