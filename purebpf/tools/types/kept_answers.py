"""The data that addresses of a file touch, as earlier runs found it: purebpf/types of the caches.

Kept under the file's build ID, and the version of the code that answers. Only files of this user
and of root are kept: another user could give a file the build ID of any other. Who may read such a
file: see `CacheFiles`.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from functools import cache
from importlib.resources import files

import iced_x86

from purebpf import _version
from purebpf.dataflow.stored import Answer, read_answers, write_answers
from purebpf.files.cache_files import CacheFiles, cache_home

__all__ = ["LIMIT", "KeptAnswers", "answers_folder", "code_version"]

LIMIT = 1 << 26
"""Bytes of all files: some 100 for an address, and as much as the types need."""
_MOST = 1 << 16
"""Addresses of a file."""


class KeptAnswers:
    """Answers by address, read once. Nothing raises.

    Args:
        build_id: of the file; "": it has none, and nothing is kept.
        owner: the user ID of the file.
        is_precise: the sampled event points at the instruction that caused it.
        directory: where the files are; None: where the user's caches are.
    """

    def __init__(
        self, build_id: str, owner: int, *, is_precise: bool, directory: str | None = None
    ) -> None:
        is_trusted = bool(build_id) and owner in (0, os.geteuid())
        skid = "precise" if is_precise else "before"
        self._key = f"{build_id}-{skid}-{code_version()}" if is_trusted else ""
        self._files = CacheFiles(directory or answers_folder(), LIMIT)
        self._answers = self._read() if is_trusted else {}
        self._has_new = False

    def _read(self) -> dict[int, Answer]:
        try:
            reader = self._files.open(self._key)
            return read_answers(json.loads(reader(0, min(reader.size, LIMIT))))
        except OSError:
            return {}
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
            self._files.drop(self._key)
            return {}

    def get(self, address: int) -> Answer | None:
        """Return the answer for an address, as the file was linked; None: not kept."""
        return self._answers.get(address)

    def add(self, address: int, answer: Answer) -> None:
        """Note an answer."""
        if len(self._answers) < _MOST:
            self._answers[address] = answer
            self._has_new = True

    def save(self) -> None:
        """Write the answers for other runs, if some are new."""
        if self._key and self._has_new:
            text = json.dumps(write_answers(self._answers), separators=(",", ":"))
            self._files.keep(self._key, [text.encode()])
            self._has_new = False


def answers_folder() -> str:
    """Return the folder of the answers in the user's caches."""
    return os.path.join(cache_home(), "purebpf", "types")


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
