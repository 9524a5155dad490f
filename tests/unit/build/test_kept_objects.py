"""An object that is kept is found without a compiler, and only while its inputs are the same."""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path

import pytest

import purebpf
from purebpf import build
from purebpf.build import headers as headers_module
from purebpf.build.compiler import find_compiler
from purebpf.build.kept_objects import headers_read

pytestmark = [pytest.mark.needs("clang"), pytest.mark.any_kernel]

C = """
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <sizes/slots.h>
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, SLOTS); __type(key, __u32);
	__type(value, __u64); } table SEC(".maps");
char LICENSE[] SEC("license") = "GPL";
"""


class Counted:
    """A clang that says how often it was started."""

    def __init__(self, directory: Path) -> None:
        self.log = directory / "started"
        self.program = directory / "clang"
        clang = shlex.join(find_compiler().command)
        self.program.write_text(f'#!/bin/sh\necho "$@" >> {self.log}\nexec {clang} "$@"\n')
        self.program.chmod(0o755)

    def starts(self) -> int:
        """Since the last call."""
        count = len(self.log.read_text().splitlines()) if self.log.exists() else 0
        self.log.unlink(missing_ok=True)
        return count


@pytest.fixture
def clang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Counted:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    counted = Counted(tmp_path)
    monkeypatch.setenv("CLANG", str(counted.program))
    return counted


@pytest.fixture
def include(tmp_path: Path) -> Path:
    directory = tmp_path / "second"
    (directory / "sizes").mkdir(parents=True)
    (directory / "sizes/slots.h").write_text("#define SLOTS 3\n")
    return directory


def slots(*includes: Path, text: str = C) -> int:
    return purebpf.read_object(build.compile(text, includes=includes)).maps["table"].max_entries


def test_no_compiler_starts_for_what_is_kept(clang: Counted, include: Path) -> None:
    first = build.compile(C, includes=[include])
    assert clang.starts()
    assert build.compile(C, includes=[include]) == first
    assert clang.starts() == 0


@pytest.mark.needs("vmlinux_btf")
def test_the_types_of_the_kernel_are_not_written_again(
    clang: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = '#include "vmlinux.h"\n#include <bpf/bpf_helpers.h>\nstruct task_struct *task;\n'
    first = build.compile(text)
    assert clang.starts()
    monkeypatch.setattr(headers_module, "make_vmlinux", None)
    assert build.compile(text) == first
    assert clang.starts() == 0
    assert build.compile(text, btf=purebpf.kernel_btf()) == first


def test_a_header_of_another_directory_that_changed_is_seen(
    clang: Counted, include: Path, tmp_path: Path
) -> None:
    assert slots(include) == 3
    (include / "sizes/slots.h").write_text("#define SLOTS 4\n")
    assert slots(include) == 4
    clang.starts()
    (tmp_path / "first/sizes").mkdir(parents=True)
    assert slots(tmp_path / "first", include) == 4
    (tmp_path / "first/sizes/slots.h").write_text("#define SLOTS 5\n")
    assert slots(tmp_path / "first", include) == 5
    assert clang.starts() == 2
    assert slots(tmp_path / "first", include) == 5
    assert clang.starts() == 0
    (tmp_path / "first/sizes/slots.h").unlink()
    assert slots(tmp_path / "first", include) == 4


def test_a_header_written_while_a_compiler_runs_is_read_again(
    clang: Counted, include: Path
) -> None:
    header = include / "sizes/slots.h"
    program = clang.program.read_text().replace("exec ", "")
    change = f"echo '#define SLOTS 8' > {header}"
    clang.program.write_text(f'{program}case "$*" in *" -c "*) {change};; esac\n')
    assert slots(include) == 3
    assert slots(include) == 8


def test_another_compiler_compiles_again(clang: Counted, include: Path) -> None:
    slots(include)
    clang.starts()
    status = clang.program.stat()
    os.utime(clang.program, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    slots(include)
    assert clang.starts() == 1


@pytest.mark.parametrize(
    "line", ["char made[] = __TIME__;", "#if __has_include(<sizes/other.h>)\nint other;\n#endif"]
)
def test_what_no_key_can_have_is_not_kept(line: str, clang: Counted, include: Path) -> None:
    build.compile(f"{C}\n{line}\n", includes=[include])
    clang.starts()
    build.compile(f"{C}\n{line}\n", includes=[include])
    assert clang.starts() == 1


def test_a_header_with_the_time_is_not_kept(clang: Counted, include: Path) -> None:
    (include / "sizes/slots.h").write_text("#define SLOTS (sizeof(__DATE__) - 8)\n")
    assert [slots(include), slots(include)] == [4, 4]
    assert len([line for line in clang.log.read_text().splitlines() if " -c " in line]) == 2


def test_environment_of_the_compiler_counts(
    clang: Counted, include: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CPATH", str(include))
    assert slots() == 3
    monkeypatch.delenv("CPATH")
    with pytest.raises(purebpf.CompileError, match=r"sizes/slots\.h"):
        slots()


def test_a_directory_may_have_any_name(clang: Counted, include: Path, tmp_path: Path) -> None:
    strange = include.rename(tmp_path / "of a $tool #1")
    assert slots(strange) == 3
    clang.starts()
    assert slots(strange) == 3
    assert clang.starts() == 0
    (strange / "sizes/slots.h").write_text("#define SLOTS 9\n")
    assert slots(strange) == 9


def test_a_damaged_file_is_compiled_again(clang: Counted, include: Path, tmp_path: Path) -> None:
    first = build.compile(C, includes=[include])
    (path,) = tmp_path.glob("cache/purebpf/objects/*")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for content in (b"", b"x", b"\0" * 100, path.read_bytes()[:40]):
        path.write_bytes(content)
        assert build.compile(C, includes=[include]) == first


def test_a_rule_of_make_is_read() -> None:
    rule = "program.o: tool.bpf.c \\\n  /a\\ b/c$$.h \\\n  d\\#.h\n"
    assert headers_read(rule, "/src") == ["/src/tool.bpf.c", "/a b/c$.h", "/src/d#.h"]
    assert headers_read("", "/src") == []
