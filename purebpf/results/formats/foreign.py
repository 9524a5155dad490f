"""Recognizing files of other tools that purebpf does not read, to name them in the error.

speedscope and inferno read some of these; the forms are in speedscope's src/import and in
inferno's src/collapse.
"""

from __future__ import annotations

import re

from purebpf.tuples import NamedTuple

__all__ = ["why_binary", "why_not"]

_HEAD = 1 << 16
_SPEEDSCOPE = "save it as speedscope's own file in https://www.speedscope.app, and convert that"


class _Kind(NamedTuple):
    pattern: re.Pattern[str]
    name: str
    advice: str


def _kind(pattern: str, name: str, advice: str = _SPEEDSCOPE) -> _Kind:
    return _Kind(re.compile(pattern, re.ASCII), name, advice)


_JSON_KEYS = (
    (("nodes", "timeDeltas"), "a CPU profile of Chrome or Node.js", _SPEEDSCOPE),
    (("callFrame", "selfSize"), "a heap profile of Chrome or Node.js", _SPEEDSCOPE),
    (("traceEvents",), "a time line of Chrome's trace events", _SPEEDSCOPE),
    (("ph", "ts"), "a time line of Chrome's trace events", _SPEEDSCOPE),
    (("meta", "threads"), "a profile of Firefox", _SPEEDSCOPE),
    (("raw_timestamp_deltas",), "a profile of stackprof", _SPEEDSCOPE),
    (("snapshot", "node_fields"), "a heap snapshot of Chrome or Node.js", "open it in DevTools"),
    (("root_frame", "sample_count"), "a session of pyinstrument", "pyinstrument -r speedscope"),
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
        r"(?:# \w+: .*\n)*# mode: full\n",
        "a file of Austin with all of its metrics",
        "measure one of them: austin without -f, or with -s or -m",
    ),
    _kind(
        r"goroutine \d+ \[",
        "the stacks of a Go program as text",
        "write the profile itself, with debug=0",
    ),
    _kind(
        r"v8-version,",
        "the log of node --prof",
        "measure again with node --cpu-prof; " + _SPEEDSCOPE,
    ),
    _kind(
        r"<\?xml[^>]*>",
        "an XML file",
        "inferno-collapse-xctrace FILE > out.folded reads those of Instruments",
    ),
)


_BINARY = (
    (
        b"MOJ",
        "a file of Austin in its binary form",
        "mojo2austin FILE out.austin turns it into text",
    ),
    (b"FLR\0", "a JDK Flight Recorder file", "jfrconv (of async-profiler) writes pprof"),
    (b"Nettrace", "a trace of .NET", "dotnet-trace convert --format speedscope"),
    (b"gmon\1", "a profile of gprof", "gprof2dot reads the text of gprof"),
    (b"memray", "a file of memray", "memray's own reporters read it"),
    (
        b"SIMPLEPERF",
        "a report of simpleperf",
        "write its profile as pprof: pprof_proto_generator.py",
    ),
    (
        b"2ELIFREP",
        "perf.data of a big-endian machine",
        "perf script -i FILE > out.txt there, or with a perf of that machine, and convert that",
    ),
    (
        (b"\xfb\xa9\x03", b"\xfb)\x03", b"{\xa9\x03", b"{)\x03"),
        "a profile of cProfile",
        "gprof2dot and snakeviz read it",
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


def why_binary(data: bytes) -> str:
    """A sentence if the bytes are packed in a form other than gzip, or another tool's, else ""."""
    for starts, name, advice in _BINARY:
        if data.startswith(starts):
            return f"{name}, which purebpf does not read: {advice}"
    for start, program in _PACKED.items():
        if data.startswith(start):
            return f"a packed file: purebpf unpacks gzip only. Unpack it first, with {program}"
    return ""


def why_not(text: str) -> str:
    """A sentence if the text begins as another tool's does, else ""."""
    head = text[:_HEAD]
    if head.lstrip()[:1] in ("{", "["):
        for keys, name, advice in _JSON_KEYS:
            if all(f'"{key}"' in text for key in keys):
                return f"{name}, which purebpf does not read: {advice}"
    for kind in _KINDS:
        if kind.pattern.match(head):
            return f"{kind.name}, which purebpf does not read: {kind.advice}"
    return ""
