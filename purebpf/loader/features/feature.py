"""An answer about the kernel, and how answers are remembered.

A failure because the machine was out of memory or descriptors says nothing about the kernel: that
answer is returned, and tested again the next time.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from purebpf.errors import KernelError
from purebpf.tuples import NamedTuple

__all__ = ["Feature", "answer_refusal", "forget", "remember"]

_PASSING = frozenset({errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.EINTR})
_P = ParamSpec("_P")
_known: list[dict[object, Feature]] = []


class Feature(NamedTuple):
    """An answer. Its truth is `supported`; `reason` is the kernel's answer."""

    name: str
    supported: bool
    reason: str

    def __bool__(self) -> bool:
        return self.supported

    def __str__(self) -> str:
        return f"{self.name}: {'yes' if self.supported else 'no'}: {self.reason}"


class _Passing(Feature):
    """One that may be different the next time."""

    __slots__ = ()


def answer_refusal(name: str, error: KernelError) -> Feature:
    """The answer that a failed call gives."""
    kind = _Passing if error.errno in _PASSING else Feature
    return kind(name, supported=False, reason=str(error))


def remember(probe: Callable[_P, Feature]) -> Callable[_P, Feature]:
    """`probe`, asked once for each set of arguments unless the answer was a passing trouble's."""
    answers: dict[object, Feature] = {}
    _known.append(answers)

    @wraps(probe)
    def ask(*args: _P.args, **kwargs: _P.kwargs) -> Feature:
        question = (args, tuple(kwargs.items()))
        answer = answers.get(question)
        if answer is None:
            answer = probe(*args, **kwargs)
            if not isinstance(answer, _Passing):
                answers[question] = answer
        return answer

    return ask


def forget() -> None:
    """Forget every answer: for a process that has gained or dropped privileges."""
    for answers in _known:
        answers.clear()
