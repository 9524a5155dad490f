"""Tools of bcc in one file each, examples/from_bcc: they count exactly what a workload does."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from purebpf import build
from tests.support.environment import ROOT

pytestmark = [pytest.mark.needs("clang", "bpf", "tracefs", "vmlinux_btf"), pytest.mark.any_kernel]

PRIME = 11
TOOLS = sorted(path.stem for path in (ROOT / "examples/from_bcc").glob("*.py"))


def tool(name: str) -> ModuleType:
    path = ROOT / f"examples/from_bcc/{name}.py"
    module = ModuleType(name)
    exec(compile(path.read_text(), str(path), "exec"), vars(module))
    return module


def run(
    name: str,
    workload: Callable[[], None],
    arguments: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    """What a tool prints about a workload, which begins when the tool is attached."""
    module = tool(name)
    build.compile(module.C)  # so that the time is not the compiler's
    begun = threading.Event()

    def work() -> None:
        begun.wait()
        workload()

    thread = threading.Thread(target=work)
    load_c = build.load_c

    def load_and_begin(*loaded: str, **options: object) -> object:
        obj = load_c(*loaded, **options)  # type: ignore[arg-type]
        attach = obj.attach

        def attach_and_begin() -> object:
            links = attach()
            begun.set()
            thread.join()
            return links

        obj.attach = attach_and_begin  # type: ignore[method-assign,assignment]
        return obj

    monkeypatch.setattr(build, "load_c", load_and_begin)
    thread.start()
    try:
        module.main(arguments)
    finally:
        begun.set()
        thread.join()
    return capsys.readouterr().out


def test_there_are_five() -> None:
    assert TOOLS == ["exitsnoop", "killsnoop", "opensnoop_bcc", "runqlat", "syscount"]


def test_killsnoop_shows_every_signal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    old = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        shown = run(
            "killsnoop",
            lambda: [os.kill(os.getpid(), signal.SIGUSR1) for _ in range(PRIME)] and None,
            ["0"],
            capsys,
            monkeypatch,
        )
    finally:
        signal.signal(signal.SIGUSR1, old)
    lines = [line for line in shown.splitlines() if line.startswith(f"{os.getpid():<8}")]
    assert [line.split()[-2:] for line in lines] == [["SIGUSR1", str(os.getpid())]] * PRIME


def test_opensnoop_shows_every_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def opens() -> None:
        for number in range(PRIME):
            with pytest.raises(FileNotFoundError):
                os.open(tmp_path / f"missing-{number}", os.O_RDONLY)

    shown = run("opensnoop_bcc", opens, ["0", str(os.getpid())], capsys, monkeypatch)
    numbers = re.findall(rf"ENOENT +{re.escape(str(tmp_path))}/missing-(\d+)\n", shown)
    assert [int(number) for number in numbers] == [*range(PRIME)]


def test_syscount_counts_every_call(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def calls() -> None:
        for _ in range(PRIME):
            os.getppid()

    shown = run("syscount", calls, ["0", str(os.getpid())], capsys, monkeypatch)
    assert re.search(rf"^getppid +{PRIME}$", shown, re.MULTILINE)


def test_exitsnoop_shows_every_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends() -> None:
        for status in range(PRIME):
            command = [sys.executable, "-S", "-c", f"import os; os._exit({status})"]
            subprocess.run(command, check=False)

    shown = run("exitsnoop", ends, ["0"], capsys, monkeypatch)
    ours = re.findall(rf"^\d+ +{os.getpid()} .* status (\d+)$", shown, re.MULTILINE)
    assert [int(status) for status in ours] == [*range(PRIME)]


def test_runqlat_draws_what_it_counted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def switches() -> None:
        for _ in range(PRIME):
            subprocess.run(["/bin/true"], check=True)

    shown = run("runqlat", switches, ["0"], capsys, monkeypatch)
    assert shown.startswith("     usecs ")
    counts = re.findall(r"-> \d+ +: (\d+) ", shown)
    assert sum(map(int, counts)) >= PRIME  # each process waits for a CPU when it begins
