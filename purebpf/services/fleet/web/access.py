"""The permission to read: a token, by header, by address once, or by the cookie that follows."""

from __future__ import annotations

import hmac
import secrets
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

from starlette.requests import ClientDisconnect
from starlette.responses import RedirectResponse, Response

from purebpf.services.fleet.web.layout import message_page

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.requests import Request

__all__ = ["Access"]

_MOST_BYTES = 4096
_ENTER = """<p>This store is read with a token: a line of the file that the server was started with.
</p><form method="post" action="/enter"><label>Token <input type="password" name="token" required
autofocus></label> <button>Enter</button></form>"""


class Access:
    """The tokens that may read.

    Args:
        tokens: the tokens of a file; none: a new one, which the printed address has.
        port: cookies belong to a host, whatever its port; their names tell servers apart.
        is_secure: whether there is TLS.
    """

    def __init__(self, tokens: Iterable[str], *, port: int, is_secure: bool) -> None:
        self._tokens = list(tokens)
        self.made_up = "" if self._tokens else secrets.token_urlsafe(16)
        if self.made_up:
            self._tokens = [self.made_up]
        self._cookie = f"purebpf-fleet-{port}"
        self._is_secure = is_secure

    def refuse(self, request: Request) -> Response | None:
        """Return the refusal in place of the page; None: it may be read."""
        if self._given(request):
            return None
        token = request.query_params.get("token", "")
        if self._knows(token):
            pairs = parse_qsl(request.url.query, keep_blank_values=True)
            rest = urlencode([pair for pair in pairs if pair[0] != "token"])
            return self._let_in(token, f"{request.url.path}?{rest}".rstrip("?"))
        return message_page(_ENTER, HTTPStatus.UNAUTHORIZED, headers={"WWW-Authenticate": "Bearer"})

    def reader_of(self, request: Request) -> tuple[str, str]:
        """Return the reader of a page that may be read: an address, and the token it uses.

        Nothing else of a request tells readers apart: whoever asks could make it up.
        """
        return request.client.host if request.client else "", self._given(request)

    def _given(self, request: Request) -> str:
        """The token in the header or the cookie of a request; "" if it has none that is known."""
        header = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
        tokens = (header, request.cookies.get(self._cookie, ""))
        return next((token for token in tokens if self._knows(token)), "")

    async def enter(self, request: Request) -> Response:
        """Answer the form that asks for a token."""
        body = b""
        try:
            async for piece in request.stream():
                body += piece
                if len(body) > _MOST_BYTES:
                    problem = "<p>The form has more than 4 kB.</p>"
                    return message_page(problem, HTTPStatus.BAD_REQUEST)
        except ClientDisconnect:
            return Response()
        token = dict(parse_qsl(body.decode("utf-8", "replace"))).get("token", "")
        if self._knows(token):
            return self._let_in(token, "/")
        return message_page(f"<p>No such token.</p>{_ENTER}", HTTPStatus.UNAUTHORIZED)

    def _let_in(self, token: str, where: str) -> Response:
        # "//host" would be another site
        answer = RedirectResponse("/" + where.lstrip("/"), HTTPStatus.SEE_OTHER)
        answer.set_cookie(
            self._cookie, token, httponly=True, samesite="lax", secure=self._is_secure, path="/"
        )
        return answer

    def _knows(self, given: str) -> bool:
        data = given.encode("utf-8", "replace")
        known = False
        for token in self._tokens:  # all of them: the time says nothing
            known |= hmac.compare_digest(data, token.encode())
        return known
