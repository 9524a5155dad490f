"""An HTTP request with a deadline, which a server cannot extend or lead to another protocol.

A redirection may lead from http to https and not back, and to no other protocol.
"""

from __future__ import annotations

import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPMessage, HTTPResponse, HTTPSConnection
from typing import IO, Any

from purebpf.syscall.deadline import Deadline

__all__ = ["requested"]


@contextmanager
def requested(url: str, *, silence_s: float, total_s: float) -> Iterator[HTTPResponse]:
    """The response to GET; `read1` of its body blocks at most until the time limit.

    Args:
        url: http or https.
        silence_s: how long the server may send nothing.
        total_s: for everything: connecting, redirections, headers, and the body.

    Raises:
        OSError, http.client.HTTPException, ValueError: as urllib.request.urlopen;
            TimeoutError: the time is over.
    """
    with Deadline(total_s) as deadline:
        try:
            with _opener(deadline).open(url, timeout=silence_s) as response:
                yield response
        except urllib.error.HTTPError:
            raise
        except Exception as error:
            if deadline.is_over:
                raise TimeoutError("the time limit for downloads is reached") from error
            raise


class _Redirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(  # noqa: PLR0917  as urllib has it
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        scheme = urllib.parse.urlsplit(newurl).scheme.lower()
        if scheme != "https" and (scheme, req.type) != ("http", "http"):
            raise urllib.error.URLError(f"redirected from {req.type} to {scheme or 'nothing'}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener(deadline: Deadline) -> urllib.request.OpenerDirector:
    """An opener of http and https only, with the proxies of the environment."""

    def plain(host: str, **options: Any) -> HTTPConnection:
        connection = HTTPConnection(host, **options)
        _watch(connection)
        return connection

    def secure(host: str, **options: Any) -> HTTPSConnection:
        connection = HTTPSConnection(host, **options)
        _watch(connection)
        return connection

    def _watch(connection: Any) -> None:
        connection._create_connection = deadline.connect  # noqa: SLF001  there is no public way

    class Plain(urllib.request.HTTPHandler):
        def http_open(self, req: urllib.request.Request) -> HTTPResponse:
            return self.do_open(plain, req)

    class Secure(urllib.request.HTTPSHandler):
        def https_open(self, req: urllib.request.Request) -> HTTPResponse:
            return self.do_open(secure, req)

    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        Plain(),
        Secure(),
        urllib.request.HTTPDefaultErrorHandler(),
        _Redirects(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener
