"""Names that a hostile process wrote into its perf map and its jitdump, in every format."""

from __future__ import annotations

import csv
import gzip
import io
import json as reader
import re
from collections.abc import Callable

import pytest

from purebpf.formats import FORMATS
from purebpf.results import Labels, Profile
from purebpf.results.formats import folded, json
from purebpf.results.formats.writer import write
from purebpf.symbols.cgroup_names import cgroup_name
from purebpf.symbols.frame import Address, Frame
from purebpf.symbols.jitdump import JitDump
from purebpf.symbols.perf_map import PerfMap
from tests.support.oracles import protobuf
from tests.unit.symbols.test_jitdump import header, load

NAMES = [
    b"</script><script>document.title='hostile'</script>",
    b"<img src=x onerror=alert(1)>",
    b"a;b;c 17",
    b"tab\tand\rreturn",
    b"\x1b[31mred\x1b]0;title\x07",
    b"\xff\xfe\x80 no UTF-8",
    "\u202egnp.exe \u2028 \u0085 \ufeff".encode(),
    b"\xed\xa0\x80 a lone surrogate, encoded",
    b'"quoted", comma\\',
    b"=HYPERLINK(1)",
    b"@NAME@ %s {0} $(id) `id` ${HOME}",
    b"n" * 65536,
]
IN_JITDUMP = [*NAMES, b"line\nbreak\n"]


def named() -> Profile:
    """A stack for each name, from both sources, in a cgroup of that name."""
    lines = b"".join(b"%x 10 %s\n" % (at << 8, name) for at, name in enumerate(NAMES))
    data = header() + b"".join(load(at, at << 8, 16, at, x) for at, x in enumerate(IN_JITDUMP))
    dump = JitDump()
    dump.grow(lambda at, size: data[at : at + size], len(data))
    profile = Profile("hostile")
    for table, names in ((PerfMap(lines), NAMES), (dump, IN_JITDUMP)):
        for number, raw in enumerate(names):
            found = table.find(number << 8)
            assert found is not None
            text = raw.decode("utf-8", "surrogateescape")[:64]
            owner = Labels(text[:15], number, cgroup=cgroup_name(f"0::/{text}").label)
            frame = Frame(found[0], 0, "[jit]", Address(number << 8), "user")
            profile.add((frame,), (), number + 1, owner)
    return profile


def written(format_name: str) -> str:
    parts = [
        each.encode() if isinstance(each, str) else each for each in write(named(), format_name)
    ]
    data = b"".join(parts)
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8", "replace")


def check_lines(text: str) -> None:
    assert all(char.isprintable() for line in text.split("\n") for char in line)


def check_folded(text: str) -> None:
    check_lines(text)
    lines = text.splitlines(keepends=True)
    assert all(line.count(";") == 1 for line in lines)
    assert folded.parse(lines).total == named().total


def check_json(text: str) -> None:
    assert text.isascii()
    assert json.document(json.parse(text)) == text


def check_page(text: str) -> None:
    assert text.count("<script") == text.count("</script>")
    assert not re.search(r"<(img|script)[^>]*(onerror|src)=", text)
    assert "<script>document" not in text


def check_pprof(_: str) -> None:
    (data,) = write(named(), "pprof")
    assert isinstance(data, bytes)
    assert all(text.decode().isprintable() for text in protobuf.fields(gzip.decompress(data))[6])


def check_tree(text: str) -> None:
    assert reader.loads(text)


def check_csv(text: str) -> None:
    lines = list(csv.reader(io.StringIO(text, newline="")))
    assert len({len(line) for line in lines}) == 1
    assert not [cell for line in lines for cell in line if cell[:1] in {"=", "@", "+"}]


WITHOUT_NAMES = {"perf.data"}
"""It has addresses."""
CHECKS: dict[str, Callable[[str], None]] = {
    "folded": check_folded,
    "json": check_json,
    "html": check_page,
    "pprof": check_pprof,
    "speedscope": check_tree,
    "firefox": check_tree,
    "chrome": check_tree,
    "csv": check_csv,
}
"""Other formats have lines of printable text."""


@pytest.mark.parametrize("format_name", sorted(FORMATS.keys() - WITHOUT_NAMES))
def test_hostile_names_do_not_break_a_format(format_name: str) -> None:
    CHECKS.get(format_name, check_lines)(written(format_name))
