"""A tool that uses the library as the documentation shows is one that mypy --strict takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.oracles.type_check import mypy

pytestmark = pytest.mark.any_kernel

TOOL = """
from __future__ import annotations

import purebpf
from purebpf.loader.attach import iterator
from purebpf.loader.programs.link_info import CgroupLink


def read(obj: purebpf.Object) -> int:
    with obj.maps["events"].reader(lost=lambda: int(obj.globals["dropped"])) as reader:
        for event in reader.drain():
            print(event.pid)
        for event in reader.read(timeout=1.0):
            print(event.comm)
        return reader.lost or 0


async def follow(obj: purebpf.Object) -> None:
    async for event in obj.maps["events"]:
        print(event.pid)


def rings(obj: purebpf.Object) -> int:
    with purebpf.RingBuffer(obj.maps["events"]) as ring:
        print(ring.drain_numpy()["pid"], [len(view) for view in ring.views()])
    with purebpf.PerfBuffer(obj.maps["samples"], pages=8) as buffer:
        return buffer.lost


def tasks(obj: purebpf.Object) -> None:
    with iterator.attach(obj.programs["list_tasks"], pid=4711) as link:
        print(link.read())
        for task in link.records("struct task_record"):
            print(task.pid, task.comm)


def links(obj: purebpf.Object) -> None:
    with obj.programs["first"].attach("/sys/fs/cgroup/web") as link:
        details = link.info.details
        if isinstance(details, CgroupLink):
            print(details.cgroup_id)


def elements(obj: purebpf.Object) -> None:
    counts = obj.maps["counts"]
    counts.update({1: 2})
    keys, values = counts.to_numpy()
    print(keys, values, counts.pop(1, None), counts[17].total)
    print(obj.maps["orders"].writer().write((1, "one"), timeout=None))
    with obj.maps["cubic"].attach() as link:
        link.update(obj.maps["successor"])


with purebpf.load(purebpf.read_object("tool.bpf.o").set(target_pid=1)) as loaded:
    loaded.attach()
    read(loaded)
"""


def test_a_tool_is_checked(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    tool = tmp_path / "tool.py"
    tool.write_text(TOOL)
    said = mypy(tmp_path, tool)
    assert said.startswith("Success"), said
