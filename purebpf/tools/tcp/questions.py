"""Questions to name servers that nobody has answered yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from purebpf.tools.tcp.event import Event

__all__ = ["LOOK_S", "OpenQuestions"]

LOOK_S = 0.1
"""Between two looks at the questions."""
_LATE_NS = 250_000_000
"""The age from which on a question without an answer is an event."""


class OpenQuestions:
    """Finds questions that are late, each once.

    Args:
        questions: the map of bpf_src/tcp/dns.h.
        has_targets: only questions of the targets count.
    """

    def __init__(self, questions: Any, *, has_targets: bool) -> None:
        self._questions = questions
        self._has_targets = has_targets
        self._told: set[tuple[object, int]] = set()

    def late(self, now_ns: int, epoch_ns: int) -> Iterator[Event]:
        """Yield an event for each question that is late since the last call.

        Args:
            now_ns: the time, by the clock of the records.
            epoch_ns: the start of that clock, in nanoseconds since 1970.

        Raises:
            KernelError: the kernel refused to read the map.
        """
        asked = list(self._questions.items())
        open_ones = {(key, question.since_ns) for key, question in asked}
        self._told &= open_ones
        for key, question in asked:
            age_ns, owner = now_ns - question.since_ns, question.owner
            is_told = (key, question.since_ns) in self._told
            if is_told or age_ns < _LATE_NS or (self._has_targets and not owner.wanted):
                continue
            self._told.add((key, question.since_ns))
            yield Event(
                *(now_ns + epoch_ns, "dns", owner.tgid, owner.tid, owner.uid, owner.comm),
                cgroup=owner.cgroup,
                netns=key.netns,
                took_ns=age_ns,
            )
