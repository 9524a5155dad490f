"""The kernel's own tracefs, mounted and not."""

from __future__ import annotations

import pytest

from purebpf.syscall import proc, tracefs

pytestmark = pytest.mark.needs("tracefs", "bpf")


def test_an_id_can_be_read_without_mounting_anything(monkeypatch):
    mounted = tracefs.tracepoint_id("sched", "sched_switch")
    before = proc.mounts()
    monkeypatch.setattr(tracefs, "mount_point", lambda: None)
    assert tracefs.tracepoint_id("sched", "sched_switch") == mounted > 0
    assert "next_pid" in tracefs.tracepoint_format("sched", "sched_switch")
    assert proc.mounts() == before


def test_every_listed_tracepoint_has_a_number_of_its_own():
    names = [name for name in tracefs.tracepoints() if name.startswith("sched/")]
    ids = {tracefs.tracepoint_id(*name.split("/")) for name in names}
    assert "sched/sched_switch" in names
    assert len(ids) == len(names)
