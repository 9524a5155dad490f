"""The data that addresses of a file touch, as earlier runs found it.

Kept under the file's build ID, and the version of the code that answers. Only files of this user
and of root are kept: another user could give a file the build ID of any other.
"""

from __future__ import annotations

import os

from purebpf.dataflow.stored import Answer, read_answers, write_answers
from purebpf.tools.types.answer_file import MOST_ADDRESSES, AnswerFile, code_version

__all__ = ["KeptAnswers"]


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
        key = f"{build_id}-{skid}-{code_version()}" if is_trusted else ""
        self._file = AnswerFile(key, directory)
        self._answers = self._file.load(read_answers) or {}
        self._has_new = False

    def get(self, address: int) -> Answer | None:
        """Return the answer for an address, as the file was linked; None: not kept."""
        return self._answers.get(address)

    def add(self, address: int, answer: Answer) -> None:
        """Note an answer."""
        if len(self._answers) < MOST_ADDRESSES:
            self._answers[address] = answer
            self._has_new = True

    def save(self) -> None:
        """Write the answers for other runs, if some are new."""
        if self._has_new:
            self._file.save(write_answers(self._answers))
            self._has_new = False
