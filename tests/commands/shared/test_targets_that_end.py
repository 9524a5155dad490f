"""A process that ends while a command attaches to it is reported: nothing of it was measured."""

from __future__ import annotations

import subprocess
from importlib import import_module

import pytest

from purebpf.measure import targets

pytestmark = pytest.mark.needs("bpf", "perf_event")

COMMANDS = {
    "trace": [],
    "exec": [],
    "open": [],
    "profile": ["1"],
    "offcpu": ["1"],
    "wall": ["1"],
    "summary": ["1"],
    "lock": ["1"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_process_that_ends_before_the_programs_run_is_no_result(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without it, the command ran on, and ended with `lost: nothing`."""
    with subprocess.Popen(["sleep", "600"]) as process:

        def end(pids: tuple[int, ...], **_: object) -> tuple[int, ...]:
            process.kill()
            process.wait()
            return pids

        monkeypatch.setattr(targets, "first_pids", end)
        main = import_module(f"purebpf.tools.{name}.__main__").main
        assert main(["-p", str(process.pid), *COMMANDS[name]]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert f"{process.pid} ended before the measurement began" in said
    assert "lost: nothing" not in said
