"""Headers that a source includes, whatever they are: found, or refused with words."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from purebpf.build.headers import read_sources
from purebpf.errors import FormatError


def test_a_thousand_headers_may_include_one_another(tmp_path: Path) -> None:
    for number in range(1000):
        following = f'#include "{(number + 1) % 1000}.h"\n'
        (tmp_path / f"{number}.h").write_text(f"int x{number};\n{following}")
    (tmp_path / "x.c").write_text('#include "0.h"\n')
    texts = read_sources([str(tmp_path / "x.c")])
    assert len(texts) == 1001
    assert len({*texts}) == 1001


def test_headers_without_an_end_are_refused(tmp_path: Path) -> None:
    with open(tmp_path / "endless.h", "wb") as file:
        os.truncate(file.fileno(), 1 << 40)
    (tmp_path / "x.c").write_text('#include "endless.h"\n')
    with pytest.raises(FormatError, match="more than 64 MiB together"):
        read_sources([str(tmp_path / "x.c")])


def test_a_source_without_an_end_is_refused() -> None:
    with pytest.raises(FormatError, match="/dev/zero: source: more than 64 MiB"):
        read_sources(["/dev/zero"])


@pytest.mark.parametrize("name", ["pipe", "/dev/zero", ".", "a\0b"])
def test_what_is_not_a_file_is_left_to_the_compiler(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "x.c").write_text(f'#include "{name}"\n')
    assert len(read_sources([str(tmp_path / "x.c")])) == 1
