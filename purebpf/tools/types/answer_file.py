"""Files of answers in purebpf/types of the caches: JSON, by a key, read and written as a whole."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

import iced_x86

from purebpf import _version
from purebpf.files.cache_files import CacheFiles, cache_home

__all__ = ["MOST_ADDRESSES", "AnswerFile", "code_version"]

Read = TypeVar("Read")

MOST_ADDRESSES = 1 << 16
"""Addresses of a file."""
_LIMIT = 1 << 26
"""Bytes of all files: some 100 for an address, and as much as the types need."""


class AnswerFile:
    """One file of the cache. Nothing raises. Who may read such a file: see `CacheFiles`.

    Args:
        key: of the file; "": there is none, and nothing is kept.
        directory: where the files are; None: where the user's caches are.
    """

    def __init__(self, key: str, directory: str | None = None) -> None:
        self.key = key
        self._files = CacheFiles(
            directory or os.path.join(cache_home(), "purebpf", "types"), _LIMIT
        )

    def load(self, read: Callable[[Any], Read]) -> Read | None:
        """Return the contents of the file as `read` gives them; None: there are none.

        A file that `read` finds damaged is dropped.
        """
        if not self.key:
            return None
        try:
            reader = self._files.open(self.key)
            return read(json.loads(reader(0, min(reader.size, _LIMIT))))
        except OSError:
            return None
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
            self._files.drop(self.key)
            return None

    def save(self, stored: Mapping[str, Any]) -> None:
        """Write the contents for other runs."""
        if self.key:
            text = json.dumps(stored, separators=(",", ":"))
            self._files.keep(self.key, [text.encode()])


@cache
def code_version() -> str:
    """Return a name for the code that makes answers; another version may know better."""
    digest = hashlib.sha256(_version.__version__.encode())
    with suppress(OSError, TypeError):  # the decoder, which does not say its version
        decoder = os.stat(iced_x86.__file__)
        digest.update(f"{decoder.st_size} {decoder.st_mtime_ns}".encode())
    for file in sorted(files("purebpf.dataflow").iterdir(), key=lambda file: file.name):
        if file.name.endswith(".py"):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
