"""What is to be measured is there, or it is told."""

from __future__ import annotations

import pytest

from purebpf.cli import targets
from purebpf.kernel import cpus
from purebpf.syscall import proc


@pytest.fixture
def two_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proc, "cpu_list", lambda _kind: "0,2")


@pytest.mark.usefixtures("two_cpus")
def test_a_cpu_that_is_not_online_is_told() -> None:
    with pytest.raises(targets.NoSuchTargetError, match=r"^CPU 1 is not online: CPUs 0,2 are$"):
        targets.check_cpus((0, 77, 1))


@pytest.mark.usefixtures("two_cpus")
def test_cpus_that_are_online_are_taken() -> None:
    targets.check_cpus(cpus.online())


def test_without_cpus_nobody_asks_which_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(proc, "cpu_list")
    targets.check_cpus(())
