"""A file that another user exchanges between the look at its symbols and the probes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import purebpf
from purebpf.loader.attach import uprobe, uprobe_multi, usdt
from purebpf.loader.features import features

DATA = Path(__file__).parents[3] / "data"
CALLED = """
#include <unistd.h>
__attribute__((noinline)) void called(void) { asm volatile(""); }
int main(void) { for (char c; read(0, &c, 1) == 1; write(1, &c, 1)) called(); }
"""
PRIME = 7
OTHER = "/usr/bin/env"

pytestmark = pytest.mark.needs("bpf", "gcc")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program"
    command = ["gcc", "-x", "c", "-", "-O1", "-w", "-o", str(path)]
    subprocess.run(command, check=True, input=CALLED, text=True)
    return path


def exchange(path: Path) -> None:
    """Put a link to a program of root's in the place of a file."""
    link = path.with_name("link")
    link.symlink_to(OTHER)
    os.replace(link, path)


def exchanging(path: Path, function: Callable[..., Any], *, first: bool) -> Callable[..., Any]:
    """The function, before or after which the file is exchanged."""

    def call(*arguments: Any, **options: Any) -> Any:
        if first:
            exchange(path)
        result = function(*arguments, **options)
        if not first:
            exchange(path)
        return result

    return call


@contextmanager
def loaded(name: str, own_tgid: int = 0) -> Iterator[purebpf.Object]:
    spec = purebpf.read_object(DATA / "attach_probes.bpf.o").set(own_tgid=own_tgid)
    with purebpf.load(spec.only(name)) as obj:
        yield obj


WAYS = [
    pytest.param("on_uprobe", uprobe, id="uprobe"),
    pytest.param("on_uprobes", uprobe_multi, id="multi", marks=pytest.mark.needs("uprobe_multi")),
]


@pytest.mark.parametrize(("name", "module"), WAYS)
def test_an_exchanged_file_is_refused(
    program: Path, monkeypatch: pytest.MonkeyPatch, name: str, module: Any
) -> None:
    found = exchanging(program, module.find_places, first=False)
    monkeypatch.setattr(module, "find_places", found)
    with (
        loaded(name) as obj,
        pytest.raises(purebpf.AttachError, match="another file took the place of"),
    ):
        obj.programs[name].attach(f"{program}:called")


@pytest.mark.parametrize(
    ("name", "module", "last"),
    [
        pytest.param("on_uprobe", uprobe, "open_probe", id="uprobe"),
        pytest.param(
            "on_uprobes", uprobe_multi, "Link", id="multi", marks=pytest.mark.needs("uprobe_multi")
        ),
    ],
)
def test_the_probe_is_in_the_file_that_was_read(
    program: Path, monkeypatch: pytest.MonkeyPatch, name: str, module: Any, last: str
) -> None:
    """Even if it is exchanged in the very last moment."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with (
        subprocess.Popen([program], bufsize=0, **pipes) as process,
        loaded(name, process.pid) as obj,
    ):
        assert process.stdin
        assert process.stdout
        process.stdin.write(b".")
        process.stdout.read(1)
        if last == "Link":  # the call is an argument of the constructor
            monkeypatch.setattr(
                module.bpf, "link_create", exchanging(program, module.bpf.link_create, first=True)
            )
        else:
            monkeypatch.setattr(module, last, exchanging(program, module.open_probe, first=True))
        with obj.programs[name].attach(f"{program}:called"):
            assert program.resolve() == Path(OTHER).resolve()
            for _ in range(PRIME):
                process.stdin.write(b".")
                assert process.stdout.read(1) == b"."
        process.kill()
        assert getattr(obj.globals["seen"], name.removeprefix("on_")) == PRIME


@pytest.mark.parametrize("multi", [True, False])
def test_so_are_static_probes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, multi: bool) -> None:
    if multi and not features.have_uprobe_multi():
        pytest.skip(str(features.have_uprobe_multi()))
    if not multi:
        monkeypatch.setattr(
            features, "have_uprobe_multi", lambda: features.Feature("it", False, "of the test")
        )
    path = tmp_path / "workload"
    subprocess.run(["gcc", "-O1", "-o", path, DATA / "usdt_workload.c"], check=True)
    monkeypatch.setattr(usdt, "find_probe", exchanging(path, usdt.find_probe, first=False))
    spec = purebpf.read_object(DATA / "attach_usdt.bpf.o").only("on_guarded")
    with (
        purebpf.load(spec) as obj,
        pytest.raises(purebpf.AttachError, match="another file took the place of"),
    ):
        obj.programs["on_guarded"].attach(f"{path}:purebpf:guarded")
