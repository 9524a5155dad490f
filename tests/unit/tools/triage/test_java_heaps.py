"""The old generations of JVMs, from the counters that they map."""

from __future__ import annotations

import pytest

from purebpf.findings.facts import JavaHeap
from purebpf.tools.triage import java_heaps

MAPS = "7f0000000000-7f0000008000 rw-s 00000000 08:01 42   /tmp/hsperfdata_me/7\n"


def look(used: int, young: int) -> dict[str, int]:
    return {
        "sun.gc.generation.1.space.0.used": used,
        "sun.gc.generation.1.space.0.maxCapacity": 900,
        "sun.gc.collector.0.invocations": young,
        "sun.gc.collector.1.invocations": 2,
    }


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, int]]:
    kept: list[dict[str, int]] = []
    monkeypatch.setattr(java_heaps.proc, "maps", lambda pid: MAPS if pid == 7 else "")
    monkeypatch.setattr(java_heaps, "_read", lambda *_: b"")
    monkeypatch.setattr(java_heaps, "read_counters", lambda _: kept.pop(0))
    return kept


def test_a_heap_at_two_looks(looks: list[dict[str, int]]) -> None:
    looks += [look(100, 5), look(150, 9)]
    watch = java_heaps.JavaHeapWatch(lambda _: True)
    watch.tick([6, 7])  # 6 has no counters
    watch.tick([])
    assert watch.finish() == (JavaHeap(7, (100, 150), 900, young=4, old=0, before=2),)


def test_a_collector_without_generations_and_other_programs(looks: list[dict[str, int]]) -> None:
    looks.append({"sun.gc.collector.0.invocations": 5})
    watch = java_heaps.JavaHeapWatch(lambda _: True)
    watch.tick([7])
    assert watch.finish() == ()
    watch = java_heaps.JavaHeapWatch(lambda _: False)
    watch.tick([7])
    assert watch.finish() == ()
