"""Filters by cgroup: a process that enters one has its samples kept, or not."""

from __future__ import annotations

import os

import pytest

from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.errors import NotSupportedError
from purebpf.observe.filters.pinned_setup import tells_ancestors
from tests.kernel.page_faults import PAGES, kept_of_child
from tests.support import expected
from tests.support.host import cgroups

pytestmark = pytest.mark.needs("bpf", "perf_event", "vmlinux_btf")


@pytest.mark.needs("cgroup2")
def test_a_cgroup_and_what_is_under_it() -> None:
    from purebpf.syscall import proc

    root = next(place for place, kind in proc.mounts() if kind == "cgroup2")
    name = f"purebpf-filter-{os.getpid()}"
    outer, inner = f"{root}/{name}", f"{root}/{name}/inner"
    if expected.kernel() == "5.10":
        assert not tells_ancestors()
    if not tells_ancestors():
        with pytest.raises(NotSupportedError, match="shows programs no cgroup under"):
            count_in_cgroup(root, "cgroup under /")
        return
    os.makedirs(inner)
    try:
        for text, kept in (
            (f"cgroup under {outer}", True),
            (f"cgroup under /{name}/inner", True),
            (f"!cgroup under /{name}", False),
            ("cgroup under /", True),
        ):
            assert count_in_cgroup(inner, text) == (PAGES if kept else 0), text
    finally:
        os.rmdir(inner)
        os.rmdir(outer)


@pytest.mark.needs("cgroup2")
def test_a_cgroup_is_not_the_one_around_it() -> None:
    with cgroups.made() as outer, cgroups.made(outer) as inner:
        for text, kept in (
            (f"cgroup == {inner}", True),
            (f"cgroup == /{outer.name}/{inner.name}", True),
            (f"cgroup != {inner}", False),
            (f"cgroup == {outer}", False),
            (f"cgroup != {outer}", True),
        ):
            assert count_in_cgroup(str(inner), text) == (PAGES if kept else 0), text


def count_in_cgroup(folder: str, text: str) -> int:
    def enter() -> None:
        with open(f"{folder}/cgroup.procs", "w") as file:
            file.write("0")

    where = bit.PERF_SAMPLE_TID | bit.PERF_SAMPLE_ADDR | bit.PERF_SAMPLE_CGROUP
    return kept_of_child(text, where, enter)
