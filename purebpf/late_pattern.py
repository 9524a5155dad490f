"""Regular expressions that are compiled when they are first used.

A start imports many modules whose expressions one run in ten needs, and compiling all of them takes
9 ms of CPU time.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, AnyStr, cast

__all__ = ["compile_later"]


class _LatePattern:
    """Stands for a `re.Pattern`, whose methods and attributes it gets one by one."""

    def __init__(self, source: str | bytes, flags: int) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(self._source, self._flags), name)  # re has a cache
        setattr(self, name, value)
        return value


def compile_later(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern that is compiled at its first use, where a faulty one raises re.error.

    It has all methods of a pattern; functions of `re` do not take it.
    """
    if TYPE_CHECKING:
        return re.compile(source, flags)
    return cast("re.Pattern[AnyStr]", _LatePattern(source, flags))
