"""Answers requests for the pages of a folder."""

from __future__ import annotations

import hmac
import secrets
import threading
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from purebpf.closable import Closing
from purebpf.errors import KernelError, PurebpfError
from purebpf.http.server import HttpServer, Request
from purebpf.results import Profile
from purebpf.results.formats import html
from purebpf.results.model.spelling import printable
from purebpf.tools.view.folder import Folder
from purebpf.tools.view.list_page import list_page

if TYPE_CHECKING:
    import socket

__all__ = ["FolderServer"]

_PATIENCE_S = 1.0


class FolderServer(Closing):
    """Serves the pages of a folder at (host, port) until it is closed; port 0: any that is free.

    Raises:
        KernelError: the address cannot be bound.
    """

    def __init__(self, folder: Folder, where: tuple[str, int]) -> None:
        self.folder = folder
        self.token = secrets.token_urlsafe(16)
        self._closed, self._wanted = threading.Event(), threading.Event()
        try:
            self._server = HttpServer(where, self._has_token, self._answer)
        except OSError as error:
            raise KernelError(
                "bind(2)",
                error.errno or 0,
                f"serving on {where[0]}:{where[1]}",
                fix="leave --serve out to listen on a free port",
            ) from None
        self._reader = threading.Thread(target=self._read_all, daemon=True)
        self._reader.start()

    @property
    def url(self) -> str:
        """The address to open in a browser."""
        host, port = self._server.address
        host_text = f"[{host}]" if ":" in host else host
        return f"http://{host_text}:{port}/?token={self.token}"

    def close(self) -> None:
        """Finish the answers under way, and stop; again is harmless."""
        self._closed.set()
        self._wanted.set()
        self._server.close()
        self._reader.join(_PATIENCE_S)  # a large file is not waited for

    def _read_all(self) -> None:
        """Read each file once, so that the list has its figures; later also files that a list
        finds.
        """
        while not self._closed.is_set():
            self._wanted.clear()
            files = self.folder.files()
            for saved in files:
                if self._closed.is_set():
                    return
                self.folder.summarize(saved)
            self.folder.forget_all_but(files)
            self._wanted.wait()

    def list(self, note: str = "") -> str:
        """The page with the list."""
        files = self.folder.files()
        read = [summary for saved in files if (summary := self.folder.known(saved))]
        if len(read) < len(files):
            self._wanted.set()
        return list_page(self.folder.path, files, read, self.token, note)

    def _has_token(self, path: str) -> bool:
        token = parse_qs(path.partition("?")[2]).get("token", [""])[0]
        return hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode())

    def _answer(self, head: bytes, connection: socket.socket) -> None:
        _FolderRequest(head, connection, self).answer()


class _FolderRequest(Request):
    """One request that has the token."""

    def __init__(self, head: bytes, connection: socket.socket, server: FolderServer) -> None:
        super().__init__(head, connection)
        self._server = server

    def get(self) -> None:
        """Answer."""
        path, _, query = self.path.partition("?")
        values = parse_qs(query, errors="surrogateescape")  # a name may have any bytes
        fields = {name: texts[0] for name, texts in values.items()}
        pages = {"/": self._list, "/profile": self._profile, "/compare": self._compare}
        page = pages.get(path)
        if page is None:
            self.send(HTTPStatus.NOT_FOUND, "text/plain", b"There is no such page.\n")
            return
        try:
            text = page(fields)
        except PurebpfError as error:
            problem = f"{printable(str(error))}\n".encode()
            self.send(HTTPStatus.UNPROCESSABLE_ENTITY, "text/plain", problem)
            return
        except LookupError as error:
            self.send(HTTPStatus.NOT_FOUND, "text/plain", f"{error.args[0]}\n".encode())
            return
        self.send(HTTPStatus.OK, "text/html", text.encode("utf-8", "backslashreplace"))

    def _list(self, _fields: dict[str, str]) -> str:
        return self._server.list()

    def _profile(self, fields: dict[str, str]) -> str:
        return html.page(self._read(fields.get("name", "")))

    def _compare(self, fields: dict[str, str]) -> str:
        names = [fields.get(side, "") for side in ("before", "after")]
        if not all(names):
            return self._server.list("Mark one profile as before and one as after.")
        before, after = map(self._read, names)
        return html.comparison(before, after, f"{names[0]} -> {names[1]}")

    def _read(self, name: str) -> Profile:
        saved = self._server.folder.find(name)
        if saved is None:
            raise LookupError("There is no such profile in the folder.")
        return self._server.folder.read(saved)
