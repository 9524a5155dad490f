"""Which way user stacks are walked, and what is said when it is not the one asked for."""

from __future__ import annotations

import errno
import os
from contextlib import ExitStack
from typing import Any

import pytest

from purebpf import objects
from purebpf.errors import KernelError, NotSupportedError
from purebpf.loader.load.load import load
from purebpf.loader.load.object import Object
from purebpf.observe.instruments.call_graph import CallGraph, load_walking
from purebpf.spec import ObjectSpec

pytestmark = pytest.mark.needs("bpf", "perf_event")
TABLES = pytest.mark.needs("task_pt_regs", "vmlinux_btf", "x86_64")


def spec() -> ObjectSpec:
    return objects.spec("profile").only("on_sample")


def refuse_tables(spec: ObjectSpec) -> Object:
    """As a kernel without bpf_task_pt_regs() does."""
    rules = spec.maps["rules"]
    if rules.autocreate and rules.max_entries > 1:
        raise KernelError("bpf(BPF_PROG_LOAD)", errno.EINVAL, "on_sample")
    return load(spec)


@TABLES
@pytest.mark.parametrize(
    ("asked", "mode"), [("auto", "tables"), ("tables", "tables"), ("copy", "copy")]
)
def test_stacks_are_walked_as_asked(asked: str, mode: str) -> None:
    with ExitStack() as owned:
        loaded, stacks, chosen = load_walking(spec(), asked, load, owned)
        assert chosen == CallGraph(mode)
        assert stacks is not None
        assert len(stacks.fds) == len(set(stacks.fds)) > 0
        assert not loaded.closed
    assert loaded.closed


@pytest.mark.parametrize(("asked", "mode"), [("fp", "fp"), ("", "")])
def test_frame_pointers_need_no_rings(asked: str, mode: str) -> None:
    with ExitStack() as owned:
        loaded, stacks, chosen = load_walking(spec(), asked, load, owned)
        assert (stacks, chosen) == (None, CallGraph(mode))
        assert loaded.maps["rules"].max_entries == 1
        assert loaded.maps["python_codes"].max_entries == 1


@pytest.mark.parametrize("asked", ["fp", "", "auto"])
def test_a_program_of_frame_pointers_alone_needs_no_maps_of_tables(asked: str) -> None:
    both = objects.spec("profile").only("on_sample", "on_sample_fp")
    with ExitStack() as owned:
        loaded, stacks, _ = load_walking(
            both, asked, refuse_tables, owned, fp_program="on_sample_fp"
        )
        assert stacks is None
        assert [*loaded.programs] == ["on_sample_fp"]
        assert loaded.maps.keys() >= {"counts", "stacks", "stats", "stack_stats"}
        assert not loaded.maps.keys() & {"rules", "procs", "pythons", "copies", "unwind_stats"}


@TABLES
def test_a_program_of_frame_pointers_is_left_out_of_others() -> None:
    both = objects.spec("profile").only("on_sample", "on_sample_fp")
    with ExitStack() as owned:
        loaded, _, _ = load_walking(both, "tables", load, owned, fp_program="on_sample_fp")
        assert [*loaded.programs] == ["on_sample"]


@pytest.mark.parametrize("refusals", [0, 1, 2])
def test_frame_pointers_do_without_the_words_of_a_leaf(refusals: int) -> None:
    """Each of three programs asks less of the kernel."""
    asked: list[ObjectSpec] = []

    def refuse_some(spec: ObjectSpec) -> Object:
        asked.append(spec)
        if len(asked) <= refusals:
            raise KernelError("bpf(BPF_PROG_LOAD)", errno.EINVAL, "on_sample")
        return load(spec)

    with ExitStack() as owned:
        _, stacks, chosen = load_walking(spec(), "fp", refuse_some, owned)
        assert (stacks, chosen) == (None, CallGraph("fp"))
    assert len(asked) == 1 + refusals


def test_auto_falls_back_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    with ExitStack() as owned:
        _, stacks, chosen = load_walking(spec(), "auto", refuse_tables, owned)
        assert stacks is None
        assert chosen.mode == "fp"
        assert "EINVAL" in chosen.why
    with ExitStack() as owned, pytest.raises(KernelError):
        load_walking(spec(), "tables", refuse_tables, owned)

    class Machine:
        machine = "riscv64"

    monkeypatch.setattr(os, "uname", Machine)
    with ExitStack() as owned:
        _, _, chosen = load_walking(spec(), "auto", load, owned)
        assert chosen.mode == "fp"
        assert "riscv64" in chosen.why
    with ExitStack() as owned, pytest.raises(NotSupportedError, match="riscv64"):
        load_walking(spec(), "copy", load, owned)


@TABLES
def test_nothing_stays_open_when_a_ring_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[Object] = []

    def loading(asked: ObjectSpec) -> Object:
        loads.append(load(asked))
        return loads[-1]

    def refuse(*_: Any, **__: Any) -> None:
        raise KernelError("perf_event_open", errno.EMFILE)

    monkeypatch.setattr("purebpf.observe.instruments.call_graph.UserStacks", refuse)
    with ExitStack() as owned:
        _, stacks, chosen = load_walking(spec(), "auto", loading, owned)
        assert (stacks, chosen.mode) == (None, "fp")
        assert [each.closed for each in loads] == [True, False]
