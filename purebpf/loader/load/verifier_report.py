"""The report that Linux 7.3 puts behind the line that decided, for some refusals.

    R0 invalid mem access 'map_value_or_null'

    Verification failed: Register Type Safety: Invalid dereference

    Reason:
      R0 may be NULL here (a nullable map value pointer). ...

    At:
      unchecked_value @ load_advice.bpf.c:35:10
      Source context:
      >>> 35 |         v->count++;
      Instruction context:
      >>>  7 | (79) r1 = *(u64 *)(r0 +0)

    Causal path:
      ...

    Suggestion:
      Add a NULL check before the access ...

    processed 7 insns (limit 1000000) ...

Seen on Debian's 7.3~rc7. The line before the report is the one of older kernels.
"""

from __future__ import annotations

import re

from purebpf.tuples import NamedTuple

__all__ = ["Report", "split_report"]

_HEADINGS = "Reason|At|Causal path|Suggestion"
_LINES = rf"(?:(?: .*|(?:{_HEADINGS}):)?\n)*"
"""The lines of a report: blank, a heading or indented. Others may follow it."""
_REPORT = re.compile(rf"^Verification failed: (?P<title>.*)\n(?P<body>{_LINES})", re.MULTILINE)
_SECTION = re.compile(rf"^({_HEADINGS}):\n((?:(?: .*)?\n)*)", re.MULTILINE)
_PLACE = re.compile(r"^  \S+ @ (?P<file>[^\s:]+):(?P<line>\d+)", re.MULTILINE)
_SOURCE = re.compile(r"^  >>> *(?P<line>\d+) \| (?P<text>(?!\([0-9a-f]{2}\) ).*)$", re.MULTILINE)
_INSTRUCTION = re.compile(r"^  >>> *(?P<index>\d+) \| \([0-9a-f]{2}\) ", re.MULTILINE)
_TAIL = re.compile(r"\A(?P<cut>(?:.*\n)*?Suggestion:\n(?:(?: .*)?\n)*)")


class Report(NamedTuple):
    """The parts of a report; "" or None for one that it does not have.

    Attributes:
        title: `Register Type Safety: Invalid dereference`.
        reason: sentences, in one line.
        suggestion: sentences, in one line.
        instruction: the index of the refused instruction.
        source: its line of C, `file:line: text`.
    """

    title: str = ""
    reason: str = ""
    suggestion: str = ""
    instruction: int | None = None
    source: str = ""


def split_report(log: str) -> tuple[str, Report]:
    """Return the log without its reports, and the last report, which is empty if there is none.

    A log that was cut at its start may begin inside of a report: the rest of that report is removed
    as well.
    """
    text = log if log.endswith("\n") else f"{log}\n"
    matches = list(_REPORT.finditer(text))
    if not matches:
        tail = _TAIL.match(text)
        if tail is None:
            return log, Report()
        return text[tail.end() :], _read("", tail["cut"])
    return _REPORT.sub("", text), _read(matches[-1]["title"], matches[-1]["body"])


def _read(title: str, body: str) -> Report:
    sections = dict(_SECTION.findall(body))
    at = sections.get("At", "")
    place, source, instruction = _PLACE.search(at), _SOURCE.search(at), _INSTRUCTION.search(at)
    line = ""
    if place is not None and source is not None:
        name = place["file"].rpartition("/")[2]
        line = f"{name}:{source['line']}: {source['text'].strip()}"
    return Report(
        title.strip(),
        " ".join(sections.get("Reason", "").split()),
        " ".join(sections.get("Suggestion", "").split()),
        int(instruction["index"]) if instruction is not None else None,
        line,
    )
