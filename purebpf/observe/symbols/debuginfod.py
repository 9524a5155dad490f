"""Debug files from debuginfod servers, by build id (debuginfod(8), "WEBAPI").

The cache is shared with elfutils' own client (debuginfod_find_debuginfo(3)): BUILDID/debuginfo and
BUILDID/executable in $DEBUGINFOD_CACHE_PATH, or debuginfod_client in $XDG_CACHE_HOME or ~/.cache.
An empty file there remembers that no server has it. Its variables count here too:
DEBUGINFOD_TIMEOUT, a server's silence in seconds; DEBUGINFOD_MAXTIME and DEBUGINFOD_MAXSIZE,
seconds and bytes, which can only lower our own bounds.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from http.client import HTTPException
from typing import IO, Any

from purebpf.errors import FormatError
from purebpf.loader.host.debug_files import image_of
from purebpf.observe.symbols.symbol_cache import cache_home, own_directory
from purebpf.results.model.spelling import printable

__all__ = ["Debuginfod", "servers"]

_TIMEOUT_S = 10
_MAX_TIME_S = 60
_MAX_SIZE = 1 << 30
_MISS_S = 600
_PIECE = 1 << 16
_NOT_FOUND = 404


def servers() -> tuple[str, ...]:
    """The servers that the user has set: DEBUGINFOD_URLS."""
    return tuple(
        url
        for url in os.environ.get("DEBUGINFOD_URLS", "").split()
        if url.startswith(("http://", "https://"))
    )


class Debuginfod:
    """Gets debug files. A server that fails once is not asked again; nothing raises.

    Args:
        urls: which servers, in this order.
        total_s: for everything together, if DEBUGINFOD_MAXTIME does not say less.

    Attributes:
        problems: the errors, in a sentence each.
    """

    def __init__(self, urls: Sequence[str], total_s: int = _MAX_TIME_S) -> None:
        self.problems: list[str] = []
        self._urls = list(urls)
        self._directory = os.environ.get("DEBUGINFOD_CACHE_PATH") or os.path.join(
            cache_home(), "debuginfod_client"
        )
        self._silence_s = _at_most("DEBUGINFOD_TIMEOUT", _TIMEOUT_S)
        self._left_s: float = _at_most("DEBUGINFOD_MAXTIME", total_s)
        self._max_size = _at_most("DEBUGINFOD_MAXSIZE", _MAX_SIZE)

    def __call__(self, build_id: str) -> str | None:
        """The path of the debug file with that build id, or None."""
        return self._get(build_id, "debuginfo")

    def executable(self, build_id: str) -> str | None:
        """The path of the program or library itself, or None."""
        return self._get(build_id, "executable")

    def _get(self, build_id: str, artifact: str) -> str | None:
        folder = os.path.join(self._directory, build_id)
        path = os.path.join(folder, artifact)
        try:
            if not own_directory(folder):
                self._say(f"other users can write to {self._directory}: nothing is downloaded")
                return None
            cached = _known(path)
            if cached is not None:
                return path if cached else None
            return path if self._download(build_id, path) else None
        except OSError as error:
            self._say(f"{self._directory}: {error.strerror}")
            return None

    def _download(self, build_id: str, path: str) -> bool:
        """Ask each server; remember that none has it, if all said so."""
        answers = [self._from(url, build_id, path) for url in tuple(self._urls)]
        if answers and all(answer is False for answer in answers):
            with suppress(FileExistsError):
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        return True in answers

    def _from(self, url: str, build_id: str, path: str) -> bool | None:
        """Return True if the file came; None: the server is out of reach."""
        import urllib.error

        from purebpf.observe.symbols.download import requested

        if os.path.lexists(path):  # an earlier server had it
            return None
        if self._left_s <= 0:
            self._say("the time limit for downloads is reached")
            return None
        begun = time.monotonic()
        where = f"{url.rstrip('/')}/buildid/{build_id}/{os.path.basename(path)}"
        try:
            left_s = self._left_s
            wait_s = min(self._silence_s, left_s)
            with requested(where, silence_s=wait_s, total_s=left_s) as response:
                self._save(response, begun + left_s, build_id, path)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == _NOT_FOUND:
                return False
            self._give_up(url, f"HTTP status {error.code}")
        except FormatError as error:
            self._give_up(url, f"{build_id}: {error.problem}")
        except (OSError, HTTPException, ValueError) as error:
            self._give_up(url, printable(str(getattr(error, "reason", error))))
        else:
            return True
        finally:
            self._left_s -= time.monotonic() - begun
        return None

    def _save(self, response: Any, end: float, build_id: str, path: str) -> None:
        """Write the file under another name, and rename it when it is the right one."""
        said = int(response.headers.get("Content-Length") or -1)
        temporary = f"{path}.{secrets.token_hex(4)}"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with open(os.open(temporary, flags, 0o600), "w+b") as file:
                size = self._copy(response, file, end)
                if said not in (-1, size):
                    raise FormatError(path, "size", f"got {size} bytes of {said}")
                if image_of(file.fileno(), path).build_id != build_id:
                    raise FormatError(path, "build id", "the downloaded file has another build ID")
            os.replace(temporary, path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)

    def _copy(self, response: Any, file: IO[bytes], end: float) -> int:
        size = 0
        while piece := response.read1(_PIECE):
            size += len(piece)
            if size > self._max_size:
                raise FormatError("", "size", f"more than {self._max_size} bytes")
            if time.monotonic() > end:
                raise TimeoutError("the time limit for downloads is reached")
            file.write(piece)
        file.flush()
        return size

    def _give_up(self, url: str, problem: str) -> None:
        self._urls.remove(url)
        self._say(f"{url}: {problem}")

    def _say(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)


def _known(path: str) -> bool | None:
    """Return True if the cache has the file; None: it does not know, or not any more."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    if status.st_size:
        return True
    if time.time() - status.st_mtime < _MISS_S:
        return False
    os.unlink(path)
    return None


def _at_most(name: str, bound: int) -> int:
    """Return the lower one of a bound and the user's setting, if that is a number above zero."""
    text = os.environ.get(name, "")
    told = int(text) if text.isascii() and text.isdigit() else 0
    return min(told, bound) if told else bound
