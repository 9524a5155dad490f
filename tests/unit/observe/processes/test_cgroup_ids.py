"""Labels of cgroups by number; what a user with many cgroups can cost."""

from __future__ import annotations

import pytest

from purebpf.observe.processes import cgroup_ids
from purebpf.observe.processes.cgroup_ids import CgroupIds


class Host:
    """Cgroups that come and go, and a clock that only a walk moves."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.walks = 0
        self.first, self.count = 1, 100

    def paths(self) -> dict[int, str]:
        self.walks += 1
        self.now_s += self.count * 1e-4
        return {number: f"/a/{number}" for number in range(self.first, self.first + self.count)}


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    made = Host()
    monkeypatch.setattr(cgroup_ids, "paths_by_id", made.paths)
    return made


def test_walks_take_a_tenth_of_the_time(host: Host) -> None:
    ids = CgroupIds(clock=lambda: host.now_s)
    host.count = 100_000  # 10 s
    assert ids.label(7) == "/a/7"
    for _ in range(1009):
        assert ids.label(1 << 40) == ""
        host.now_s += 0.05
    assert host.walks == 1
    host.now_s += 60
    ids.label(1 << 40)
    assert host.walks == 2


def test_labels_of_cgroups_that_were_removed_do_not_pile_up(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroup_ids, "_MOST", 1000)
    ids = CgroupIds(clock=lambda: host.now_s)
    for turn in range(50):
        host.first = 1 + 100 * turn
        assert ids.label(host.first) == f"/a/{host.first}"
        host.now_s += 60
    assert len(ids._labels) <= 1100  # noqa: SLF001
