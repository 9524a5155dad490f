"""Objects of earlier compilations: found without a compiler, by all that decides their bytes.

The key holds the facts that are available before a compiler runs: the source, its flags, the
programs that are compilers here, the types of the kernel. The other headers that a compiler read
are stored with the object; it is used when their contents are the same, and when no new header has
come into a directory that is searched before theirs. ccache calls this its direct mode, and has the
same exceptions: the macros of the time, and `__has_include`.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence

from purebpf.files.cache_files import CacheFiles, cache_home
from purebpf.files.regular_file import opened_regular

__all__ = ["KeptObject", "headers_read"]

_LIMIT = 64 << 20
"""Bytes of all objects that are kept."""

_FORMAT = b"purebpf object 1\n"
_OF_THE_TIME = re.compile(rb"\b__(?:DATE|TIME|TIMESTAMP)__\b")
_NOT_KEPT = re.compile(r"\b__(?:DATE__|TIME__|TIMESTAMP__|has_include|has_embed)")
_PATH = re.compile(r"(?:\\[ #]|\S)+")
_ENVIRONMENT = ("CPATH", "C_INCLUDE_PATH", "CCC_OVERRIDE_OPTIONS", "SOURCE_DATE_EPOCH")
"""Variables that clang(1) takes directories and options from."""
_MOST_PARTS = 4
"""`#include` with more directories than that is not looked for elsewhere."""


class KeptObject:
    """The place of one object in the user's cache.

    Args:
        inputs: everything that decides the object's bytes, except for the headers in `texts`.
        texts: the source and its own headers.
        directories: where the compiler looks for headers, before those that it has itself.
    """

    def __init__(
        self,
        inputs: Iterable[str],
        texts: Sequence[str],
        directories: Sequence[str],
    ) -> None:
        environment = (os.environ.get(name, "") for name in _ENVIRONMENT)
        key = hashlib.sha256()
        for part in (*inputs, *environment, *directories, *texts):
            content = part.encode("utf-8", "surrogateescape")
            key.update(b"%d:%b" % (len(content), content))
        self._key = f"{key.hexdigest()}.kept"
        self._files = CacheFiles(os.path.join(cache_home(), "purebpf", "objects"), _LIMIT)
        self._directories = directories
        self._started = time.time_ns()
        self._can_be_kept = not any(_NOT_KEPT.search(text) for text in texts)

    def take(self) -> bytes:
        """Return the object; b"" when there is none, or it was built from other headers."""
        try:
            reader = self._files.open(self._key)
            state, _, content = reader(0, reader.size).removeprefix(_FORMAT).partition(b"\n")
            headers, _, object_bytes = content.partition(b"\n\n")
            is_same = state == self._state(headers.decode(errors="surrogateescape").split("\n"))
        except (OSError, ValueError):
            return b""
        return object_bytes if is_same else b""

    def keep(self, object_bytes: bytes, headers: Sequence[str]) -> None:
        """Keep an object, unless a header was written since: which contents it has is not known.

        Args:
            object_bytes: the object.
            headers: the files that it was built from, without generated ones.
        """
        try:
            is_settled = all(os.stat(path).st_mtime_ns < self._started for path in headers)
            state = self._state(headers)
        except (OSError, ValueError):  # one was read by the compiler, and is gone
            return
        if self._can_be_kept and is_settled:
            paths = "\n".join(headers).encode("utf-8", "surrogateescape")
            self._files.keep(self._key, [_FORMAT, state, b"\n", paths, b"\n\n", object_bytes])

    def _state(self, headers: Sequence[str]) -> bytes:
        """Return a digest of headers, and of the others that the compiler would read without them.

        Raises:
            OSError: one cannot be read.
            ValueError: one is another each time.
        """
        state = hashlib.sha256()
        for path in filter(None, headers):
            with opened_regular(path) as fd, open(fd, "rb", closefd=False) as file:
                content = file.read()
            if _OF_THE_TIME.search(content):
                raise ValueError(path)
            state.update(hashlib.sha256(content).digest())
            for candidate in _candidates(path, self._directories):
                state.update(b"1" if os.path.exists(candidate) else b"0")
        return state.hexdigest().encode()


def headers_read(rule: str, directory: str) -> list[str]:
    r"""Return the files in the output of `-MD`: `program.o: program.bpf.c /usr/include/a\ b.h`.

    Args:
        rule: for make(1).
        directory: where the compiler ran.
    """
    paths = _PATH.findall(rule.partition(": ")[2].replace("\\\n", " "))
    plain = (re.sub(r"\\([ #])", r"\1", path).replace("$$", "$") for path in paths)
    return [os.path.join(directory, path) for path in plain]


def _candidates(path: str, directories: Sequence[str]) -> Iterator[str]:
    """Yield the paths where a header of this name, `b.h`, `a/b.h` and so on, would be read
    instead.
    """
    parts = path.split(os.sep)
    for directory in directories:
        for count in range(1, min(_MOST_PARTS, len(parts)) + 1):
            yield os.path.join(directory, *parts[-count:])
