"""`purebpf new`: the folder that it makes runs at once, and its test passes."""

from __future__ import annotations

import configparser
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.commands.conftest import ROOT
from tests.support.oracles.type_check import mypy, pyright

pytestmark = [pytest.mark.needs("clang", "vmlinux_btf"), pytest.mark.any_kernel]


PLUGIN = ("-p", "purebpf.testing.plugin")
"""An installed purebpf has it as an entry point; here it is only on the path."""


def python(
    *arguments: str, cwd: Path, path: str = "/usr/bin:/bin"
) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": str(ROOT), "PATH": path, "XDG_CACHE_HOME": str(cwd / ".cache")}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=cwd, env=environment
    )


def begin(directory: Path, path: str = "/usr/bin:/bin") -> Path:
    done = python("-m", "purebpf", "new", "demo", cwd=directory, path=path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "demo/demo/demo.bpf.o\n" in done.stdout
    assert done.stdout.endswith("Next: cd demo && pytest\n")
    return directory / "demo"


@pytest.mark.needs("bpf", "tracefs")
def test_its_test_passes_and_it_runs(tmp_path: Path) -> None:
    folder = begin(tmp_path)
    tested = python("-m", "pytest", "-q", "-p", "no:cacheprovider", *PLUGIN, cwd=folder)
    assert "2 passed" in tested.stdout, tested.stdout + tested.stderr
    ran = python("-m", "demo", "1", "0.01", cwd=folder)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "lost: 0\n")


def test_its_options_are_explained(tmp_path: Path) -> None:
    folder = begin(tmp_path)
    helped = python("-m", "demo", "--help", cwd=folder)
    assert helped.stdout.startswith("usage: demo [-h] PID [SECONDS]\n"), helped.stderr
    wrong = python("-m", "demo", "one", cwd=folder)
    assert (wrong.returncode, "Traceback" in wrong.stderr) == (2, False)


def test_a_changed_source_is_compiled_by_the_test(tmp_path: Path) -> None:
    folder = begin(tmp_path)
    source = folder / "demo/demo.bpf.c"
    source.write_text(source.read_text().replace("on_call", "on_other_call"))
    tested = python("-m", "pytest", "-q", "-k", "the_object", *PLUGIN, cwd=folder)
    assert "'on_other_call'" in tested.stdout


def test_a_wheel_has_the_object_and_the_typed_module(tmp_path: Path) -> None:
    folder = begin(tmp_path)
    for made in ("demo.bpf.o", "demo_bpf.py"):
        (folder / "demo" / made).unlink()
    code = "from setuptools.build_meta import build_wheel; build_wheel('dist')"
    built = python("-c", code, cwd=folder)
    (wheel,) = (folder / "dist").glob("demo-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"demo/demo.bpf.o", "demo/demo_bpf.py", "demo/__main__.py"} <= names, built.stderr


HATCH = """
[tool.hatch.build.targets.wheel]
packages = ["demo"]

[tool.hatch.build.targets.wheel.hooks.purebpf]
packages = ["demo"]
includes = ["headers"]
"""


def test_hatchling_makes_the_same_wheel(tmp_path: Path) -> None:
    if find_spec("hatchling") is None:
        pytest.skip("hatchling is not installed")
    folder = begin(tmp_path)
    for made in ("demo.bpf.o", "demo_bpf.py"):
        (folder / "demo" / made).unlink()
    (folder / "headers").mkdir()
    (folder / "headers/name.h").write_text('char PROGRAM_OF[] SEC("license.hatch") = "x";\n')
    source = folder / "demo/demo.bpf.c"
    source.write_text(source.read_text() + '#include "name.h"\n')
    project = folder / "pyproject.toml"
    project.write_text(project.read_text() + HATCH)
    metadata = folder / "entry-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: entry\nVersion: 0\n")
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    hook = setup["options.entry_points"]["hatch"]
    (metadata / "entry_points.txt").write_text(f"[hatch]{hook}\n")
    # An installed purebpf has the entry point; `.` is where these tests have it.
    code = "import sys; sys.path.append('.'); from hatchling.build import *; build_wheel('dist')"
    built = python("-c", code, cwd=folder)
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = (folder / "dist").glob("demo-*.whl")
    with zipfile.ZipFile(wheel) as files:
        assert {"demo/demo_bpf.py", "demo/__main__.py"} <= set(files.namelist()), built.stderr
        assert b"license.hatch" in files.read("demo/demo.bpf.o")


def test_the_typed_module_type_checks(tmp_path: Path) -> None:
    folder = begin(tmp_path)
    config = folder / "mypy.ini"
    config.write_text("[mypy]\nstrict = True\nfollow_imports = silent\n")
    checked = python("-m", "mypy", "--config-file", str(config), "-p", "demo", cwd=folder)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_misspelt_variable_of_load_own_is_an_error(tmp_path: Path) -> None:
    folder = begin(tmp_path)
    wrong = folder / "wrong.py"
    wrong.write_text(
        "from demo import demo_bpf\n"
        "demo_bpf.load_own(target_pid=1).globals['lost']\n"
        "demo_bpf.load_own(targt_pid=1)\n"
        "demo_bpf.load_own(target_pid=[])\n"
    )
    lines = [line for line in mypy(folder, wrong).splitlines() if ": error: " in line]
    assert [line.split(":")[1] for line in lines] == ["3", "4"], lines
    assert pyright(folder, wrong) == {(wrong, 3), (wrong, 4)}


def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    done = python("-m", "purebpf", "new", "demo", cwd=tmp_path)
    assert done.returncode == 1
    assert "demo: mkdir(2) failed with EEXIST. use another name" in done.stderr
    assert list((tmp_path / "demo").iterdir()) == []


@pytest.mark.parametrize("name", ["Demo", "../x", "class", "purebpf", "9"])
def test_names_that_are_not_packages_are_refused(name: str, tmp_path: Path) -> None:
    done = python("-m", "purebpf", "new", name, cwd=tmp_path)
    assert done.returncode == 2
    assert "is not a name for a package" in done.stderr


def test_without_a_compiler_the_files_are_there_and_it_says_what_to_install(
    tmp_path: Path,
) -> None:
    if find_spec("ziglang") is not None:
        pytest.skip("ziglang is installed, and is a compiler")
    done = python("-m", "purebpf", "new", "demo", cwd=tmp_path, path="/nonexistent")
    assert done.returncode == 1
    assert 'pip install "purebpf[build]"' in " ".join(done.stderr.split())
    assert (tmp_path / "demo/demo/demo.bpf.c").exists()


@pytest.mark.slow
@pytest.mark.needs("bpf", "tracefs")
def test_it_passes_with_ziglang_alone(tmp_path: Path) -> None:
    if find_spec("ziglang") is None:
        pytest.skip('ziglang is not installed: pip install "purebpf[build]"')
    folder = begin(tmp_path, path="/nonexistent")
    tested = python("-m", "pytest", "-q", cwd=folder, path="/nonexistent")
    assert "2 passed" in tested.stdout, tested.stdout + tested.stderr
