"""What is to be measured is there, or it is reported."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from purebpf.loader.host import cpus
from purebpf.loader.types import kernel_btf as btf
from purebpf.measure import targets, wait
from purebpf.measure.named_targets import present_processes
from purebpf.measure.target_ends import TargetEnds
from purebpf.syscall import proc


@pytest.fixture
def two_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proc, "cpu_list", lambda _kind: "0,2")


@pytest.mark.usefixtures("two_cpus")
def test_a_cpu_that_is_not_online_is_reported() -> None:
    with pytest.raises(targets.NoSuchTargetError, match=r"^CPU 1 is offline \(online: 0,2\)$"):
        targets.check_cpus((0, 77, 1))


@pytest.mark.usefixtures("two_cpus")
def test_cpus_that_are_online_are_taken() -> None:
    targets.check_cpus(cpus.online())


def test_without_the_option_online_cpus_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(proc, "cpu_list")
    targets.check_cpus(())


@pytest.mark.parametrize(("namespace", "answer"), [((0, 0), False), ((4, 4026532561), True)])
def test_only_where_namespaces_may_be_below_are_structs_read(
    monkeypatch: pytest.MonkeyPatch, namespace: tuple[int, int], *, answer: bool
) -> None:
    monkeypatch.setattr(btf, "has_kernel_btf", lambda: True)
    assert targets.PidNamespace(*namespace).needs_types() is answer


def test_without_the_kernels_types_no_struct_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(btf, "has_kernel_btf", lambda: False)
    assert not targets.PidNamespace(4, 4026532561).needs_types()


@pytest.fixture
def children() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two processes that wait."""
    processes = [subprocess.Popen(["sleep", "600"]) for _ in "12"]
    yield processes
    for process in processes:
        process.kill()
        process.wait()


def _target(**chosen: Any) -> Any:
    everybody: dict[str, Any] = {"pids": (), "tids": (), "cpus": (), "cgroup": None}
    return SimpleNamespace(**everybody | {"comm": None, "uid": None} | chosen)


def _end(children: list[subprocess.Popen[bytes]], how: int) -> None:
    for child in children:
        child.kill()
        os.waitid(os.P_PID, child.pid, how)


@pytest.mark.parametrize("option", ["pids", "tids"])
@pytest.mark.parametrize("reaped", [True, False])
def test_targets_that_end_before_the_programs_are_attached_are_reported(
    option: str, children: list[subprocess.Popen[bytes]], *, reaped: bool
) -> None:
    target = _target(**{option: tuple(child.pid for child in children)})
    expected = "and 1 more ended before the measurement began"
    with pytest.raises(targets.NoSuchTargetError, match=expected), targets.make_task_filter(target):
        _end(children, os.WEXITED | (0 if reaped else os.WNOWAIT))


def test_another_process_with_the_number_is_not_the_target(
    children: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        pytest.raises(targets.NoSuchTargetError, match="ended before the measurement began"),
        targets.make_task_filter(_target(pids=(children[0].pid,))),
    ):
        monkeypatch.setattr(proc, "start_ticks", lambda _pid: 1)


def test_one_target_that_goes_on_is_enough(children: list[subprocess.Popen[bytes]]) -> None:
    pids = tuple(child.pid for child in children)
    with targets.make_task_filter(_target(pids=pids)):
        children[0].kill()
        children[0].wait()
    with TargetEnds(pids) as ends:
        assert ends.ended == [pids[0]]
        assert not wait.until(None, (), pause=0.0, targets=ends)
        children[1].kill()
        assert wait.until(None, (), targets=ends)
        assert ends.are_over()


def test_a_run_whose_targets_have_ended_is_over(children: list[subprocess.Popen[bytes]]) -> None:
    children[0].kill()
    children[0].wait()
    with TargetEnds([children[0].pid]) as ends:
        assert wait.until(None, (), targets=ends)


def test_the_present_processes_of_a_target(children: list[subprocess.Popen[bytes]]) -> None:
    first, second = (child.pid for child in children)
    assert present_processes(_target(pids=(second, first))) == tuple(sorted((first, second)))
    assert present_processes(_target(tids=(first,))) == (first,)
    tree = present_processes(_target(pids=(os.getpid(),)), tree=True)
    assert {first, second} <= set(tree)
    assert os.getpid() not in tree
    own = present_processes(_target(uid=os.getuid()))
    assert {first, second} <= set(own)
    children[0].kill()
    children[0].wait()
    assert present_processes(_target(pids=(first, second))) == (second,)


def test_a_target_without_a_process_is_reported(children: list[subprocess.Popen[bytes]]) -> None:
    with pytest.raises(targets.NoSuchTargetError, match="no process that runs now"):
        present_processes(_target(pids=(children[0].pid,), uid=(1 << 32) - 3))
    with pytest.raises(targets.NoSuchTargetError, match="no process is called"):
        present_processes(_target(comm="nobody-has-it"))
