"""Recognizing files of other tools that purebpf does not read, to name them in the error.

speedscope and inferno read some of these; the forms are in speedscope's src/import and in
inferno's src/collapse.
"""

from __future__ import annotations

import re

from purebpf.tuples import NamedTuple

__all__ = ["why_not", "why_packed"]

_HEAD = 1 << 16
_SPEEDSCOPE = "save it as speedscope's own file in https://www.speedscope.app, and convert that"


class _Kind(NamedTuple):
    pattern: re.Pattern[str]
    name: str
    advice: str


def _kind(pattern: str, name: str, advice: str = _SPEEDSCOPE) -> _Kind:
    return _Kind(re.compile(pattern, re.ASCII), name, advice)


_JSON_KEYS = (
    (("nodes", "timeDeltas"), "a CPU profile of Chrome or Node.js"),
    (("callFrame", "selfSize"), "a heap profile of Chrome or Node.js"),
    (("traceEvents",), "a time line of Chrome's trace events"),
    (("ph", "ts"), "a time line of Chrome's trace events"),
    (("meta", "threads"), "a profile of Firefox"),
    (("raw_timestamp_deltas",), "a profile of stackprof"),
)
"""Keys that JSON of a tool has, all of them."""
_KINDS = (
    _kind(
        r"(?:# callgrind format\n|(?:version|creator|cmd|positions): .*\n)+"
        r"(?:.*\n)*?events: ",
        "a profile of callgrind",
    ),
    _kind(
        r"(?:Attaching .*\n|\s)*@\w*\[",
        "the output of bpftrace",
        "stackcollapse-bpftrace.pl FILE > out.folded turns stacks into folded ones",
    ),
    _kind(
        r"(?:Flat profile:|\s*Call graph\b)",
        "the text of gprof",
        "gprof2dot reads it",
    ),
    _kind(
        r"File: .*\n(?:.*\n)*?Showing nodes accounting for ",
        "the text of `go tool pprof`",
        "write the profile itself: go tool pprof -proto",
    ),
    _kind(
        r"sample:\s+event_type: ",
        "the text of simpleperf",
        "write its profile as pprof: pprof_proto_generator.py",
    ),
    _kind(
        r"(?:\s*\n)?(?:[ \t]+\S.*\n)+[ \t]*\d+\n",
        "a text of stacks and counts, as DTrace and bcc print them",
        "stackcollapse.pl FILE > out.folded turns it into folded stacks",
    ),
    _kind(
        r"<\?xml[^>]*>",
        "an XML file",
        "inferno-collapse-xctrace FILE > out.folded reads those of Instruments",
    ),
)


_PACKED = {
    b"\x28\xb5\x2f\xfd": "zstd -d",
    b"\xfd7zXZ\0": "xz -d",
    b"BZh": "bzip2 -d",
    b"PK\3\4": "unzip",
    b"\x04\x22\x4d\x18": "lz4 -d",
}
"""How a packed file begins, and the program that unpacks it."""


def why_packed(data: bytes) -> str:
    """A sentence if the bytes are packed in a form other than gzip, else ""."""
    for start, program in _PACKED.items():
        if data.startswith(start):
            return f"a packed file: purebpf unpacks gzip only. Unpack it first, with {program}"
    return ""


def why_not(text: str) -> str:
    """A sentence if the text begins as another tool's does, else ""."""
    head = text[:_HEAD]
    if head.lstrip()[:1] in ("{", "["):
        for keys, name in _JSON_KEYS:
            if all(f'"{key}"' in head for key in keys):
                return f"{name}, which purebpf does not read: {_SPEEDSCOPE}"
    for kind in _KINDS:
        if kind.pattern.match(head):
            return f"{kind.name}, which purebpf does not read: {kind.advice}"
    return ""
