"""What read_object takes, and what it says of other things."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import purebpf
from purebpf.errors import FormatError

PATH = Path(__file__).parents[2] / "data/elf_maps.bpf.o"


@pytest.mark.parametrize("source", [None, 5, 2.5, object(), ["a.o"]])
def test_another_thing_than_a_source_is_named(source: object) -> None:
    kind = type(source).__name__
    with pytest.raises(TypeError, match=f"expected a path, bytes, .*, got {kind}$"):
        purebpf.read_object(source)  # type: ignore[arg-type]


def test_a_text_file_says_how_to_open_it() -> None:
    with (
        PATH.open(encoding="latin-1") as file,
        pytest.raises(TypeError, match="open as text; open an object file with mode 'rb'"),
    ):
        purebpf.read_object(file)  # type: ignore[arg-type]
    with PATH.open("rb") as binary:
        assert purebpf.read_object(binary).maps


def test_a_named_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "tool.bpf.o"
    os.mkfifo(pipe)
    with pytest.raises(FormatError, match="a named pipe; open it, and pass the open file"):
        purebpf.read_object(pipe)


def test_a_pipe_of_the_shell_is_read() -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "wb") as pipe:
        pipe.write(PATH.read_bytes())
    try:
        assert purebpf.read_object(f"/dev/fd/{reader}").maps
    finally:
        os.close(reader)
