"""Libraries of Go, which C programs call: their functions have no table in a section of its own."""

from __future__ import annotations

import os
import subprocess

import pytest

from purebpf.errors import NotSupportedError
from purebpf.loader.attach._common.probe_place import open_image
from purebpf.observe.script.return_probes import _unwinder_of
from purebpf.tools.latency.functions import User, Wanted, find_functions

pytestmark = pytest.mark.needs("go", "gcc", "x86_64")
SOURCE = """
package main
import "C"
//export Work
func Work(n C.int) C.int { return C.int(grow(int(n))) }
//go:noinline
func grow(n int) int { var a [256]byte; a[n] = 1; if n == 0 { return 1 }; return grow(n-1) }
func main() {}
"""


@pytest.fixture(scope="module", params=["c-shared", "pie"])
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("go")
    (folder / "work.go").write_text(SOURCE)
    command = ["go", "build", f"-buildmode={request.param}", "-o", "work.so", "work.go"]
    environment = {**os.environ, "GOCACHE": str(folder / "cache"), "GO111MODULE": "off"}
    subprocess.run(command, cwd=folder, env=environment, check=True)
    return str(folder / "work.so")


@pytest.mark.parametrize("name", ["main.grow", "main.*"])
def test_functions_of_go_are_counted_only(file: str, name: str) -> None:
    with pytest.raises(NotSupportedError, match="goroutines move between stacks"):
        find_functions([f"{file}:{name}"], Wanted())
    assert find_functions([f"{file}:main.grow"], Wanted(returns=False))


def test_functions_of_c_beside_them(file: str) -> None:
    (function,) = find_functions([f"{file}:Work"], Wanted())
    assert isinstance(function, User)
    assert function.exits is not None


def test_they_have_no_return_probe(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stack of Go that grows ends a program that has one, whatever else its process has."""
    monkeypatch.setattr("purebpf.observe.script.return_probes.proc.maps", lambda _: "libc.so.6")
    with open_image(file) as (image, _):
        assert _unwinder_of(image, 1) == "it has functions of Go"
