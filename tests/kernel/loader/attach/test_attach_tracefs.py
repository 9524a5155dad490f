"""Probes through tracefs, as on a kernel without the PMUs: the same counts, and nothing left."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import purebpf
from purebpf.errors import KernelError
from purebpf.loader.attach.perf_event import owning_link
from purebpf.loader.perf.probe import Probe
from purebpf.loader.perf.probe_event import open_probe
from purebpf.syscall import pmu, tracefs

SPEC = purebpf.read_object(Path(__file__).parents[3] / "data/attach_probes.bpf.o").set(
    own_tgid=os.getpid()
)
PRIME = 31

pytestmark = pytest.mark.needs("bpf", "vmlinux_btf", "tracefs")
kprobes = pytest.mark.needs("kprobes")
WAYS = [
    *("uprobe", "uretprobe"),
    *(pytest.param(way, marks=kprobes) for way in ("kprobe", "kretprobe", "ksyscall")),
]


@pytest.fixture(autouse=True)
def _no_pmu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pmu, "attribute", lambda _name, _attribute: None)


@contextmanager
def loaded(program: str) -> Iterator[purebpf.Object]:
    with purebpf.load(SPEC.only(program)) as obj:
        yield obj


def own_events() -> list[str]:
    """The lines of this process in the tables of probes."""
    found = []
    for table in ("kprobe_events", "uprobe_events"):
        try:
            found += tracefs.read(table).splitlines()
        except KernelError:  # no such table
            continue
    return [line for line in found if f":purebpf/p_{os.getpid()}_" in line or "/r_" in line]


def call_getpriority(times: int = PRIME) -> None:
    for _ in range(times):
        os.getpriority(os.PRIO_PROCESS, 0)


@pytest.mark.parametrize("way", WAYS)
def test_every_call_is_counted_and_the_event_is_gone(way: str):
    with loaded(f"on_{way}") as obj:
        with obj.programs[f"on_{way}"].attach():
            assert len(own_events()) == 1
            call_getpriority()
        assert own_events() == []
        call_getpriority()
        assert getattr(obj.globals["seen"], way) == PRIME


def test_two_probes_of_one_place():
    with loaded("on_uprobe") as obj:
        program = obj.programs["on_uprobe"]
        with program.attach(), program.attach(pid=os.getpid()):
            assert len(own_events()) == 2
            call_getpriority(3)
        assert obj.globals["seen"].uprobe == 6
    assert own_events() == []


def test_a_place_that_cannot_be_probed_leaves_no_event():
    with pytest.raises(KernelError):
        open_probe(Probe("uprobe", b"/proc/version", 0))
    with pytest.raises(KernelError, match="perf_event_open"):
        open_probe(Probe("uprobe", os.fsencode(os.path.realpath("/bin/sh")), 4096, pid=2**22 + 1))
    assert own_events() == []


def test_a_program_that_does_not_fit_leaves_no_event():
    with loaded("on_uprobe") as obj:
        event = open_probe(Probe("uprobe", os.fsencode(os.path.realpath("/bin/sh")), 4096))
        assert len(own_events()) == 1
        program = obj.programs["on_uprobe"]
        program.close()
        with pytest.raises(ValueError, match="is closed"):
            owning_link(program, event, "it", cookie=0)
    assert own_events() == []


@pytest.mark.needs("no_kprobes")
def test_a_kernel_without_kprobes_says_so_here_too():
    with (
        loaded("on_kprobe") as obj,
        pytest.raises(purebpf.NotSupportedError, match="its tracefs does not have kprobe_events"),
    ):
        obj.programs["on_kprobe"].attach()
