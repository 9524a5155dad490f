"""The places of separate debug files, and that only the right file counts."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from purebpf.kernel.symbolize import debug_files
from purebpf.kernel.symbolize.symbolizer import Symbolizer
from purebpf.symbols.elf_image import ElfImage
from purebpf.symbols.frame import is_unnamed_function
from tests.kernel.symbol_programs import compile_program, running

pytestmark = pytest.mark.needs("gcc", "objcopy")


UNNAMED = "a function without a symbol"


class Split:
    """A program with its symbols in another file, and where the program says that is."""

    def __init__(self, folder: Path, build_id: str) -> None:
        self.folder = folder / "bin"
        self.folder.mkdir()
        self.program = compile_program(self.folder / "program", f"-Wl,--build-id={build_id}")
        self.debug = folder / "program.debug"
        subprocess.run(["objcopy", "--only-keep-debug", self.program, self.debug], check=True)
        link = f"--add-gnu-debuglink={self.debug}"
        subprocess.run(["objcopy", "-S", link, self.program], check=True)
        self.build_id = ElfImage.of_bytes(self.program.read_bytes()).build_id

    def name(self) -> object:
        with running(self.program) as child:
            (found,) = Symbolizer().user(child.pid, [child.functions["local_function"]])
        return UNNAMED if is_unnamed_function(found) else found.name


@pytest.fixture
def system(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(debug_files, "_DEBUG", str(tmp_path / "system"))
    return tmp_path / "system"


def _places(split: Split, system: Path) -> dict[str, Path]:
    return {
        "beside it": split.folder / "program.debug",
        "in .debug": split.folder / ".debug" / "program.debug",
        "in the system's": Path(f"{system}{split.folder}/program.debug"),
        "by build id": system / ".build-id" / split.build_id[:2] / f"{split.build_id[2:]}.debug",
    }


@pytest.mark.parametrize("build_id", ["sha1", "none"])
@pytest.mark.parametrize("place", ["beside it", "in .debug", "in the system's", "by build id"])
def test_symbols_are_found_in_each_place_of_debug_files(tmp_path, system, build_id, place):
    split = Split(tmp_path, build_id)
    assert split.name() == UNNAMED
    path = _places(split, system)[place]
    path.parent.mkdir(parents=True, exist_ok=True)
    os.rename(split.debug, path)
    if build_id == "none" and place == "by build id":
        assert split.name() == UNNAMED
    else:
        assert split.name() == "local_function"


@pytest.mark.parametrize("build_id", ["sha1", "none"])
def test_a_wrong_file_in_one_place_does_not_hide_the_right_one_in_the_next(
    tmp_path, system, build_id
):
    split = Split(tmp_path, build_id)
    other = compile_program(tmp_path / "other", "-DOTHER", "-Wl,--build-id=0xabcdef0123")
    places = _places(split, system)
    subprocess.run(["objcopy", "--only-keep-debug", other, places["beside it"]], check=True)
    assert split.name() == UNNAMED
    places["in .debug"].parent.mkdir()
    places["in .debug"].mkdir()  # nor does something that is not a file
    places["in the system's"].parent.mkdir(parents=True)
    os.rename(split.debug, places["in the system's"])
    assert split.name() == "local_function"
