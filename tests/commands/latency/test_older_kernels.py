"""latency without what older kernels lack: what it does there works here as well."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from purebpf.errors import NotSupportedError
from purebpf.observe.instruments import sched_compat
from purebpf.tools.latency import Call, CallLatency, LatencyOptions, attaching
from tests.support.environment import ROOT

pytestmark = pytest.mark.needs("bpf", "vmlinux_btf", "gcc", "x86_64")

FUNCTIONS = {"leaf": 21, "recurse": 21, "outer": 1, "deep": 23, "tail": 19, "last": 19}


def without_cookies(patch: pytest.MonkeyPatch) -> None:
    """Before Linux 5.15: an object for each function."""
    patch.setattr(attaching, "have_attach_cookie", lambda: False)
    patch.setattr(attaching, "have_uprobe_multi", lambda: False)


def without_multi(patch: pytest.MonkeyPatch) -> None:
    """Before Linux 6.6: a link for each function."""
    patch.setattr(attaching, "have_uprobe_multi", lambda: False)


def without_task_storage(patch: pytest.MonkeyPatch) -> None:
    """Before Linux 5.11: tasks in a hash."""
    patch.setattr(sched_compat, "has_task_storage", lambda: False)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("latency") / "nested_calls"
    source = ROOT / "tests/data/nested_calls.c"
    subprocess.run(["gcc", "-O2", "-pthread", "-w", "-o", target, source], check=True)
    return target


@pytest.mark.parametrize("lacking", [without_cookies, without_multi, without_task_storage])
def test_calls_are_counted_all_the_same(
    lacking: Callable[[pytest.MonkeyPatch], None], program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking(monkeypatch)
    functions = tuple(f"{program}:{name}" for name in FUNCTIONS)
    pipe = subprocess.PIPE
    with (
        subprocess.Popen([program], stdin=pipe, stdout=pipe) as process,
        CallLatency(LatencyOptions(functions, pids=(process.pid,), time=True)) as session,
    ):
        process.communicate(b"\n")
        ending = session.stop()
    assert {row.function: row.calls for row in session.rows} == FUNCTIONS
    by_path = {branch.path: branch.calls for branch in session.branches}
    assert by_path["recurse", "recurse"] == by_path["outer", "leaf"] - 2 == 3
    assert not ending.loss.any


@pytest.mark.parametrize("lacking", [without_cookies, without_multi, without_task_storage])
def test_slow_calls_have_stacks_all_the_same(
    lacking: Callable[[pytest.MonkeyPatch], None], program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking(monkeypatch)
    functions = (f"{program}:leaf", f"{program}:outer")
    options = LatencyOptions(functions, slower_ms=0, stacks=True, call_graph="fp")
    with (
        subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process,
        CallLatency(options._replace(pids=(process.pid,))) as session,
    ):
        process.communicate(b"\n")
        ending = session.stop()
    calls = [event for event in ending.events if isinstance(event, Call)]
    assert Counter(call.function for call in calls) == {"leaf": 21, "outer": 1}
    assert all(call.user_stack for call in calls)


@pytest.mark.needs("g++")
def test_functions_of_cpp_are_found_by_what_people_call_them(tmp_path: Path) -> None:
    source, target = tmp_path / "calls.cpp", tmp_path / "calls"
    source.write_text(
        "namespace db { struct Pool {\n"
        '__attribute__((noinline)) int take(int one) { asm volatile(""); return one; }\n'
        '__attribute__((noinline)) int take(long one) { asm volatile(""); return one; } }; }\n'
        "int main() { db::Pool pool; for (int i = 0; i < 7; i++) pool.take(i);\n"
        "for (long i = 0; i < 5; i++) pool.take(i); }\n"
    )
    subprocess.run(["g++", "-O1", "-o", target, source], check=True)
    options = LatencyOptions((f"{target}:db::Pool::take", f"{target}:db::P*::take(int)"))
    with CallLatency(options) as session:
        subprocess.run([target], check=True)
        session.stop()
    assert {row.function: row.calls for row in session.rows} == {
        "db::Pool::take(int)": 7,
        "db::Pool::take(long)": 5,
    }


@pytest.mark.needs("objcopy")
def test_returns_of_go_are_refused(tmp_path: Path, program: Path) -> None:
    """They would end the program; a section tells that a file was made by Go."""
    notes = tmp_path / "notes"
    notes.write_bytes(bytes(16))
    target = tmp_path / "go"
    section = f".gopclntab={notes}"
    subprocess.run(["objcopy", "--add-section", section, program, target], check=True)
    with (
        pytest.raises(NotSupportedError, match="Go program"),
        CallLatency(LatencyOptions((f"{target}:leaf",))),
    ):
        pass
    with CallLatency(LatencyOptions((f"{target}:leaf",), only_count=True)) as session:
        subprocess.run([target, "all"], check=True, stdout=subprocess.DEVNULL)
        session.stop()
    assert [row.calls for row in session.rows] == [21]
