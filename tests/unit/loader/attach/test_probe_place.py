"""Places of uprobes: texts, files and offsets."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from purebpf.errors import AttachError
from purebpf.loader.attach._common.probe_place import (
    ProbePlace,
    find_file,
    find_places,
    parse_place,
)
from purebpf.loader.attach.kprobe_multi import regex


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("/bin/bash:readline", ProbePlace("/bin/bash", "readline", 0)),
        ("libc.so.6:malloc+0x10", ProbePlace("libc.so.6", "malloc", 16)),
        ("libc.so.6:malloc+4", ProbePlace("libc.so.6", "malloc", 4)),
        ("/bin/bash:0x1234", ProbePlace("/bin/bash", "", 0x1234)),
        ("/bin/bash:4660+4", ProbePlace("/bin/bash", "", 4664)),
        ("/opt/a:b/c:f", ProbePlace("/opt/a:b/c", "f", 0)),
        ("tool:tcp_*", ProbePlace("tool", "tcp_*", 0)),
        ("tool:_ZN1a1bEv", ProbePlace("tool", "_ZN1a1bEv", 0)),
        ("tool:a::b", ProbePlace("tool", "a::b", 0)),
        ("/opt/a:b/c:a::~b(d::e*)+4", ProbePlace("/opt/a:b/c", "a::~b(d::e*)", 4)),
        ("/opt/c++:a::operator++(int)", ProbePlace("/opt/c++", "a::operator++(int)", 0)),
    ],
)
def test_each_spelling_of_a_place_is_parsed(text: str, place: ProbePlace) -> None:
    assert parse_place(text) == place


@pytest.mark.parametrize("text", ["", "file", "file:", ":function", "file:f+", "file:f+x"])
def test_text_that_is_not_a_place_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a place in a file"):
        parse_place(text)


def test_a_file_is_searched_where_its_kind_would_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool, library = tmp_path / "bin/tool", tmp_path / "lib/libx.so.1"
    for path in (tool, library):
        path.parent.mkdir()
        path.touch()
    monkeypatch.setenv("PATH", f"/nowhere:{tool.parent}")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library.parent))
    assert find_file("tool", "it") == str(tool)
    assert find_file("libx.so.1", "it") == str(library)
    assert find_file(str(library), "it") == str(library)
    monkeypatch.chdir(tmp_path)
    assert find_file("./bin/tool", "it") == "./bin/tool"
    for missing in ("libx.so.1x", "tool2", "./tool"):
        with pytest.raises(AttachError, match=f"it: open failed with ENOENT. file {missing}"):
            find_file(missing, "it")


@pytest.mark.parametrize("path", ["/proc/self/root/proc/self/exe", "/proc/self/exe"])
def test_what_only_proc_leads_to_is_left_as_it_is(path: str) -> None:
    assert find_file(path, "it") == path


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("vfs_*", {"vfs_read", "vfs_"}),
        ("vfs_rea?", {"vfs_read"}),
        ("a.b", {"a.b"}),
        ("*", {"vfs_read", "vfs_", "a.b", "axb", "other_vfs_read"}),
    ],
)
def test_patterns_know_stars_and_question_marks(pattern: str, names: set[str]) -> None:
    fits = re.compile(regex(pattern))
    known = {"vfs_read", "vfs_", "a.b", "axb", "other_vfs_read"}
    assert {name for name in known if fits.fullmatch(name.encode())} == names


def test_a_misspelt_function_names_similar_ones() -> None:
    match = r"libc\.so\.6 does not have a function 'maloc'; similar: .*\bmalloc\b"
    with pytest.raises(AttachError, match=match):
        find_places("libc.so.6:maloc", "the test")


def test_what_is_no_file_is_said_to_be_that(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path, kind in ((fifo, "a FIFO"), (tmp_path, "a directory"), ("/dev/null", "a device")):
        with pytest.raises(AttachError, match=f"{path} is {kind}, not a program or library"):
            find_places(f"{path}:main", "it")


@pytest.mark.parametrize("name", ["libc", "c"])
def test_a_short_name_is_the_library_of_the_linker(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    path = find_file(name, "uprobe")
    assert os.path.basename(path).startswith("libc.so")


def test_a_program_wins_over_a_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "libc").write_bytes(b"")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_file("libc", "uprobe") == str(tmp_path / "libc")
