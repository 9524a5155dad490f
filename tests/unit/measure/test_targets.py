"""What is to be measured is there, or it is reported."""

from __future__ import annotations

import pytest

from purebpf.errors import NotSupportedError
from purebpf.loader.host import cpus
from purebpf.loader.types import kernel_btf as btf
from purebpf.measure import targets
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
    monkeypatch.setattr(btf, "kernel_btf", lambda: None)
    assert targets.PidNamespace(*namespace).needs_types() is answer


def test_without_the_kernels_types_no_struct_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def hidden() -> None:
        raise NotSupportedError("kernel BTF", "hidden")

    monkeypatch.setattr(btf, "kernel_btf", hidden)
    assert not targets.PidNamespace(4, 4026532561).needs_types()
