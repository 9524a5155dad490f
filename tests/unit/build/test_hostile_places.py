"""Compiling where other users may write: nothing of theirs runs, is included or is written over."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from purebpf.build import compile as compile_c
from purebpf.build import generate
from purebpf.build.compiler import find_compiler
from purebpf.errors import NotSupportedError
from purebpf.files.trusted_path import find_program
from tests.support.environment import ROOT
from tests.support.host.users import as_user

pytestmark = [pytest.mark.needs("clang", "chown"), pytest.mark.any_kernel]

BOB = 4711
C = """#include <linux/types.h>
__attribute__((section("raw_tp/sys_enter"))) int on_call(void *c) { return 0; }
char LICENSE[] __attribute__((section("license"))) = "GPL";
"""


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Path]:
    """A directory like /tmp, which Bob can reach."""
    above = Path("/tmp") / f"purebpf-{os.getpid()}-{tmp_path.name}"
    above.mkdir()
    above.chmod(0o1777)
    yield above
    shutil.rmtree(above)


def test_headers_that_others_planted_are_not_included(shared: Path) -> None:
    source = shared / "tool.bpf.c"
    source.write_text('#include "shop.h"\n' + C)
    as_user(BOB, lambda: (shared / "shop.h").write_text("#define PLANTED\n"))
    with pytest.raises(NotSupportedError, match="any user may put headers there"):
        compile_c(source, cache=False)
    with pytest.raises(NotSupportedError, match="any user may put headers there"):
        compile_c(C, includes=[shared], cache=False)
    source.write_text(C)  # nothing is looked for beside it
    assert compile_c(source, cache=False)


def test_generate_writes_over_nothing_through_a_link(shared: Path) -> None:
    (shared / "x.bpf.c").write_text(C)
    victim = shared / "victim"
    victim.write_text("root's")
    victim.chmod(0o600)
    links = [f"{name}{end}" for name in ("x.bpf.o", "x_bpf.py") for end in ("", f".{os.getpid()}")]

    def plant() -> None:
        for name in links:
            os.symlink(victim, shared / name)

    as_user(BOB, plant)
    shared.chmod(0o777)  # his links may be replaced
    generate(shared)
    assert victim.read_text() == "root's"
    assert not (shared / "x.bpf.o").is_symlink()


def test_generate_waits_at_no_pipe(shared: Path) -> None:
    (shared / "x.bpf.c").write_text(C)
    for name in ("x.bpf.o", "x_bpf.py"):
        os.mkfifo(shared / name)
    code = f"from purebpf.build import generate; generate({str(shared)!r})"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=120, check=True)
    assert (shared / "x.bpf.o").is_file()


@pytest.mark.parametrize(
    ("clang", "path"), [("./clang", ""), ("", ":"), ("clang", ":"), ("", "shared")]
)
def test_a_compiler_of_another_user_does_not_run(
    clang: str, path: str, shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = find_compiler().command[0]
    home, work = shared / "home", tmp_path / "work"
    work.mkdir()
    home.mkdir()
    os.chown(home, BOB, BOB)
    (work / "clang").symlink_to(ours)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/clang").symlink_to(ours)

    def plant() -> None:
        for name in (home / "clang", shared / "clang-99"):
            name.write_text(f"#!/bin/sh\ntouch {home}/ran\necho clang version 99.0.0\n")
            name.chmod(0o755)

    as_user(BOB, plant)
    (home / "x.bpf.c").write_text(C)
    monkeypatch.chdir(work)
    monkeypatch.setenv("CLANG", clang)
    more = f"{shared}:" if path == "shared" else path
    monkeypatch.setenv("PATH", f"{more}{tmp_path}/bin:{os.environ['PATH']}")
    assert compile_c(home / "x.bpf.c", cache=False)
    assert not (home / "ran").exists()


def test_programs_are_not_looked_for_where_any_user_may_write(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shared / "addr2line").write_text("#!/bin/sh\n")
    (shared / "addr2line").chmod(0o755)
    monkeypatch.chdir(shared)
    monkeypatch.setenv("PATH", f":.:{shared}")
    assert find_program("addr2line") is None
    shared.chmod(0o755)
    assert find_program("addr2line") == str(shared / "addr2line")
