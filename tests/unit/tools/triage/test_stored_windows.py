"""Findings from the windows that an agent stored, and messages where there are none."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path

import pytest

from purebpf.results.formats.otlp import Entry, Sample, Series, Window, document
from purebpf.results.formats.otlp_reader import ServiceProfile
from purebpf.tools.triage.__main__ import main
from purebpf.tools.triage.stored_windows import Windows, facts_of

NS = 10**9
PYTHON = (Entry("Py_RunMain", "python3.11", "user"), Entry("_start", "python3.11", "user"))
THREAD = (Entry("Thread.run", "threading.py", "python"), *PYTHON)
FUTEX = tuple(Entry(name, "kernel", "kernel") for name in ("futex_do_wait", "futex_wait"))
LOCK = (Entry("__new_sem_wait_slow64", "libc.so.6", "user"),)
LISTEN = (Entry("ep_poll", "kernel", "kernel"), Entry("epoll_wait", "libc.so.6", "user"))


def window(kind: str, samples: dict[Sample, int], started_s: float, period_ns: int = 0) -> bytes:
    unit = "count" if kind == "samples" else "nanoseconds"
    about = Window(kind, unit, round(started_s * NS), 60 * NS, period_ns)
    series = Series((("service.name", "shop.service"),), samples)
    return gzip.compress(document(about, [series]))


def store(folder: Path, age_s: float = 100.0) -> None:
    """A window with a lock convoy, and one with a busy function; twice, as for two sinks."""
    waits = {
        Sample("shop", (*FUTEX, *LOCK, Entry("reserve", "stock.py", "python"), *THREAD)): 90 * NS,
        Sample("shop", (*LISTEN, *PYTHON)): 60 * NS,
    }
    busy = {Sample("shop", (Entry("price", "stock.py", "python"), *THREAD)): 19 * 30}
    started_s = time.time() - age_s
    for sink in ("a", "b"):
        (folder / sink).mkdir()
        (folder / sink / "1-offcpu.otlp.gz").write_bytes(window("off_cpu", waits, started_s))
        cpu = window("samples", busy, started_s, NS // 19)
        (folder / sink / "1-cpu.otlp.gz").write_bytes(cpu)


def test_findings_of_an_incident_that_is_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store(tmp_path)
    assert main(["--since", "10m", "--from", str(tmp_path), "--json"]) == 10
    shown = json.loads(capsys.readouterr().out)
    convoy, busy = shown["findings"]
    assert (convoy["kind"], convoy["cost"], convoy["who"]["unit"]) == (
        "lock-convoy",
        1.5,
        "shop.service",
    )
    assert "the lock that reserve takes" in convoy["what"]
    assert (busy["kind"], busy["own"]["function"]) == ("cpu", "price")
    assert main(["--from", str(tmp_path), "--container", "shop", "--json"]) == 10
    assert json.loads(capsys.readouterr().out)["findings"] == shown["findings"]
    assert main(["--from", str(tmp_path), "--container", "web"]) == 1
    assert "no container or unit 'web' was measured" in capsys.readouterr().err
    assert convoy["command"] == ["view", str(tmp_path)]
    assert shown["elapsed_s"] == 60.0
    assert any("stored windows hold the stacks" in sentence for sentence in shown["missing"])


def test_each_process_has_the_program_of_its_own_stacks() -> None:
    about = Window("samples", "count", 0, 60 * NS, NS // 19)
    own = (Entry("work", "shop", "user"), Entry("_start", "shop", "user"))
    stacks = {"python": PYTHON, "own": own, "none": FUTEX}
    series = {
        name: Series((("service.name", f"{name}.service"),), {Sample(name, stack): 1})
        for name, stack in stacks.items()
    }
    profiles = tuple(ServiceProfile(about, each) for each in series.values())
    processes = facts_of(Windows(profiles), 2).processes
    programs = {process.unit: process.exe for process in processes}
    assert programs == {
        "python.service": "/python3.11",
        "own.service": "/shop",
        "none.service": "",
    }


def test_windows_of_another_time_are_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store(tmp_path, age_s=5000.0)
    assert main(["--since", "10m", "--from", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert "no window below" in error
    assert "2 are there" in error


def test_a_broken_window_is_said_and_a_missing_folder_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store(tmp_path)
    (tmp_path / "2-cpu.otlp.gz").write_bytes(b"no window")
    assert main(["--from", str(tmp_path)]) == 10
    shown = capsys.readouterr().out
    assert "a window that cannot be read: 2-cpu.otlp.gz" in shown
    assert "(-" not in shown  # no process IDs
    assert main(["--from", str(tmp_path / "absent")]) == 1
