"""The places of separate debug files, and that only the right file counts."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from purebpf.loader.host import debug_files
from purebpf.observe.symbols import symbol_cache
from purebpf.observe.symbols.symbolizer import Symbolizer
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


NOBODY = 65534
POISON = """
import os, subprocess, sys
program, debug, place = sys.argv[1:]
over = os.path.dirname(os.path.dirname(place))
subprocess.run(["mount", "-t", "tmpfs", "none", over], check=True)
os.makedirs(os.path.dirname(place))
with open(debug, "rb") as source, open(place, "wb") as target:
    target.write(source.read())
os.execv(program, [program])
"""


@pytest.mark.parametrize(
    ("image", "debug", "is_used"), [(0, 0, True), (0, NOBODY, False), (NOBODY, NOBODY, True)]
)
def test_the_owner_of_a_file_decides_what_its_functions_are_called(
    tmp_path, system, image, debug, is_used
):
    split = Split(tmp_path, "sha1")
    path = _places(split, system)["beside it"]
    os.rename(split.debug, path)
    os.chown(split.program, image, -1)
    os.chown(path, debug, -1)
    assert split.name() == ("local_function" if is_used else UNNAMED)


@pytest.mark.parametrize("later", [False, True], ids=["this run", "the next run"])
def test_a_user_names_nothing_by_debug_files_in_a_namespace_of_their_own(
    tmp_path, system, monkeypatch, later
):
    """Every user may mount something over /usr/lib/debug in a namespace of their own.

    What names a file there would name it for all that run it, and, from the cache, for years.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(symbol_cache, "_WORTH", 1)
    split = Split(tmp_path, "sha1")
    for above in (split.folder, *split.folder.parents):
        if above != Path("/tmp") and above != Path("/"):
            above.chmod(above.stat().st_mode | 0o011)
    split.debug.chmod(0o644)
    place = _places(split, system)["by build id"]
    place.parent.mkdir(parents=True)
    system.chmod(0o755)
    for each in (place.parent, place.parent.parent):
        each.chmod(0o755)
    words = ["unshare", "--user", "--map-root-user", "--mount", "--propagation", "private"]
    words += ["/usr/bin/python3", "-c", POISON, str(split.program), str(split.debug), str(place)]
    with running(*words, user=NOBODY) as child:
        ours = Symbolizer()
        (name,) = ours.user(child.pid, [child.functions["local_function"]])
        assert is_unnamed_function(name)
        if later:
            ours = Symbolizer()
        with running(split.program) as own:
            (name,) = ours.user(own.pid, [own.functions["local_function"]])
            assert is_unnamed_function(name)
