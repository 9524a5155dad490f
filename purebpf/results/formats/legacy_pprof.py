"""Recognizing profiles of gperftools, jemalloc and old Go programs, which purebpf does not read.

Some of their lines look like folded stacks. The formats are described in Go's legacy_profile.go
(github.com/google/pprof/profile) and in docs/cpuprofile-fileformat.html of gperftools.
"""

from __future__ import annotations

import re
import struct

__all__ = ["why_not"]

_TEXT = re.compile(
    rb"\s*(?:heap profile: *\d+: *\d+ \[ *\d+: *\d+\] @|heap_v2/\d+\n"
    rb"|\w+ profile: total \d+\n"
    rb"|--- ?(?:symbol|profile|(?:heap|growth|contention|mutex|thread|cpu)z?)\b"
    rb"|MAPPED_LIBRARIES:)"
)
_HEAD = 1 << 12
_PERIOD = 3  # which word of the header: 0, 3, 0, the period in us, 0
_LONGEST_PERIOD = 1 << 30
_ADVICE = (
    "Convert it first: go tool pprof -proto PROGRAM FILE > out.pb.gz (or google-pprof --collapsed "
    "PROGRAM FILE > out.folded), then give that to purebpf convert"
)


def why_not(data: bytes) -> str:
    """A sentence if the bytes begin as such a profile does, else ""."""
    if _TEXT.match(data[:_HEAD]):
        return f"a text of gperftools, jemalloc or old Go, whose addresses need names. {_ADVICE}"
    if _is_cpu_profile(data):
        return f"a CPU profile of gperftools, whose addresses need names. {_ADVICE}"
    return ""


def _is_cpu_profile(data: bytes) -> bool:
    for words in (struct.Struct(f"{order}5{size}") for order in "<>" for size in "QI"):
        if len(data) >= words.size:
            header = words.unpack_from(data)
            period = header[_PERIOD]
            if header == (0, 3, 0, period, 0) and 0 < period < _LONGEST_PERIOD:
                return True
    return False
