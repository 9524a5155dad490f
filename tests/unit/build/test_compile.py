"""Compiling from Python: what is kept, what errors say, which compiler is used."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import purebpf
from purebpf import build
from purebpf.build import compiler

pytestmark = [pytest.mark.needs("clang"), pytest.mark.any_kernel]

C = """
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#ifndef SLOTS
#define SLOTS 4
#endif
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, SLOTS); __type(key, __u32);
	__type(value, __u64); } table SEC(".maps");
SEC("socket") int count(struct __sk_buff *skb) { return skb->len; }
char LICENSE[] SEC("license") = "GPL";
"""


@pytest.fixture(autouse=True)
def cache_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def kept(cache_home: Path) -> list[Path]:
    return sorted(cache_home.glob("purebpf/objects/*"))


def change_kept(path: Path, object_bytes: bytes) -> None:
    head, end, _ = path.read_bytes().partition(b"\n\n")
    path.write_bytes(head + end + object_bytes)


def test_an_object_is_kept_for_the_same_source(cache_home: Path) -> None:
    first = build.compile(C)
    (path,) = kept(cache_home)
    change_kept(path, b"from the cache")
    assert build.compile(C) == b"from the cache"
    assert build.compile(C, cache=False) == first
    assert build.compile(C, defines={"SLOTS": 7}) != first
    assert len(kept(cache_home)) == 2


def test_another_header_is_another_object(tmp_path: Path) -> None:
    header = tmp_path / "slots.h"
    text = '#include "slots.h"' + C
    for slots in (3, 5):
        header.write_text(f"#define SLOTS {slots}\n")
        spec = purebpf.read_object(build.compile(text, includes=[tmp_path]))
        assert spec.maps["table"].max_entries == slots


def test_a_cache_of_another_user_is_not_used(cache_home: Path) -> None:
    build.compile(C)
    (path,) = kept(cache_home)
    change_kept(path, b"planted")
    assert build.compile(C) == b"planted"
    path.parent.chmod(0o777)
    assert build.compile(C) != b"planted"


def test_the_bytes_do_not_depend_on_the_directory(tmp_path: Path) -> None:
    made = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tool.bpf.c").write_text(C)
        made.append(build.compile(tmp_path / name / "tool.bpf.c", cache=False))
    assert made[0] == made[1]


def test_an_error_is_the_compilers_with_the_line(tmp_path: Path) -> None:
    source = tmp_path / "tool.bpf.c"
    source.write_text(C.replace("skb->len", "skb->length"))
    with pytest.raises(purebpf.CompileError) as info:
        build.compile(source)
    assert info.value.source == "tool.bpf.c"
    assert "tool.bpf.c:9:" in info.value.log
    assert "no member named 'length'" in str(info.value)


def test_a_warning_is_given() -> None:
    with pytest.warns(RuntimeWarning, match="unused variable 'x'"):
        build.compile(C.replace("return skb", "int x; return skb"), cache=False)


def test_no_compiler_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "clang"
    old.write_text("#!/bin/sh\necho Debian clang version 11.0.1\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(compiler, "_ziglang", lambda: None)
    with pytest.raises(purebpf.NotSupportedError) as info:
        build.compile(C)
    assert "is clang version 11.0.1; 15 or later is needed" in str(info.value)
    assert 'pip install "purebpf[build]"' in str(info.value)
    assert "apt-get install clang" in str(info.value)


def test_the_clang_of_the_environment_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLANG", "/nonexistent/clang -x")
    with pytest.raises(purebpf.NotSupportedError, match=r"CLANG=/nonexistent/clang -x: does not"):
        build.compile(C)


@pytest.mark.slow
def test_ziglang_compiles_without_headers_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    if find_spec("ziglang") is None:
        pytest.skip('ziglang is not installed: pip install "purebpf[build]"')
    monkeypatch.setenv("PATH", "/nonexistent")
    assert compiler.find_compiler().command == (sys.executable, "-m", "ziglang", "clang")
    spec = purebpf.read_object(build.compile(C))
    assert spec.maps["table"].max_entries == 4
