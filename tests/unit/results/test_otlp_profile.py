"""A window of the agent opens as any other profile."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from purebpf.errors import FormatError
from purebpf.observe.saved.profile_loader import Bounds, read
from purebpf.results.formats import folded, pprof_reader
from purebpf.results.formats.otlp import Entry, Sample, Series, Window, document
from purebpf.results.formats.otlp_profile import looks_like, parse
from purebpf.symbols.frame import Unknown

KERNEL = Entry("do_wait", "kernel", "kernel")
STACK = (
    KERNEL,
    Entry("", "libc.so.6", "user", "ab" * 20, 4096),
    Entry("Handler.get", "app.py", "python"),
    Entry("main", "python3", "user"),
)
FACTS = (("purebpf.seen", 7), ("purebpf.lost.map_full", 3), ("purebpf.lost.ring_full", 0))


def window(kind: str = "off_cpu", unit: str = "nanoseconds") -> bytes:
    series = [
        Series((("service.name", "shop"), ("host.name", "node1")), {Sample("worker", STACK): 5}),
        Series((("service.name", "db"), ("host.name", "node1")), {Sample("db", (KERNEL,)): 2}),
    ]
    return document(Window(kind, unit, 10**18, 60 * 10**9, 0, FACTS, b"0" * 16), series, "0.1")


def test_services_kinds_and_losses_are_there(tmp_path: Path) -> None:
    path = tmp_path / "window.otlp.gz"
    path.write_bytes(gzip.compress(window()))
    profile = read(str(path))
    assert profile.title == "off-CPU time of node1 in 60.0 s, by service"
    assert (profile.unit, profile.total) == ("ns", 7)
    shop, db = sorted(profile.rows(), key=lambda row: -row.weight)
    assert (shop.labels.process_name, shop.labels.comm) == ("shop", "worker")
    assert db.labels.process_name == "db"
    assert [frame.kind for frame in shop.kernel or ()] == ["kernel"]
    assert [frame.kind for frame in shop.user or ()] == ["user", "python", "user"]
    assert isinstance((shop.user or ())[0], Unknown)
    assert db.user == ()
    assert profile.loss.seen == 7
    assert {cause.name: cause.lost for cause in profile.loss.causes} == {
        "map_full": 3,
        "ring_full": 0,
    }
    assert any("Handler.get" in line for line in folded.lines(profile))


def test_samples_are_counted() -> None:
    profile = parse(window("samples", "count"))
    assert profile.unit == "samples"
    assert profile.title.startswith("CPU time of node1")


def test_other_files_are_not_taken_for_windows(tmp_path: Path) -> None:
    assert looks_like(window())
    assert not pprof_reader.looks_like(window())
    for other in (b"", b"\n", b"\na;b 1\n", b"\x0a\x02\x08\x01", b"\x12\x00", window()[:-1]):
        assert not looks_like(other), other


def test_parts_of_a_window_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="there is none in it"):
        parse(b"\x0a\x00\x12\x00")
    with pytest.raises(FormatError):
        parse(window().replace(b"do_wait", b"do_wa\xff\xff"))
    path = tmp_path / "window.otlp"
    path.write_bytes(window())
    with pytest.raises(FormatError, match="more than"):
        read(str(path), bounds=Bounds(800, 10, 10, 10, 1.0))
