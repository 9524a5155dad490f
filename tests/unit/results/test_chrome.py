"""The trace events: what the Trace Event Format asks for, and what the profile holds."""

from __future__ import annotations

import json as reader
from collections import Counter
from typing import Any

import pytest

from purebpf.results import Labels, Marks, Profile
from purebpf.results.formats import chrome
from tests.support.builders import profiles
from tests.support.builders.profiles import HELP, MAIN, READ, START, WORK

KEYS = {"name", "cat", "ph", "ts", "dur", "pid", "tid", "args"}


def trace(profile: Profile) -> dict[str, Any]:
    """The file, read; each event has what the format asks for."""
    tree: dict[str, Any] = reader.loads("".join(chrome.document(profile)))
    assert set(tree) == {"displayTimeUnit", "otherData", "traceEvents"}
    assert tree["displayTimeUnit"] in {"ms", "ns"}
    for event in tree["traceEvents"]:
        assert isinstance(event["name"], str)
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        if event["ph"] == "M":
            assert event["name"] in {"process_name", "thread_name"}
            assert isinstance(event["args"]["name"], str)
        else:
            assert event["ph"] == "X"
            assert set(event) <= KEYS
            assert event["dur"] >= 0
    return tree


def slices(tree: dict[str, Any]) -> list[dict[str, Any]]:
    return [event for event in tree["traceEvents"] if event["ph"] == "X"]


def nests(events: list[dict[str, Any]]) -> bool:
    """Whether the events of each thread lie within or beside one another."""
    threads: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for each in events:
        start, end = each["ts"], each["ts"] + each["dur"]
        threads.setdefault((each["pid"], each["tid"]), []).append((start, end))
    for spans in threads.values():
        open_: list[float] = []
        for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            while open_ and open_[-1] <= start + 1e-6:
                open_.pop()
            if open_ and end > open_[-1] + 1e-6:
                return False
            open_.append(end)
    return True


def waits() -> Profile:
    """Two waits of one thread, one of which was woken early, and a sum."""
    found = Profile("waits", unit="ns", about={"elapsed_s": 1.5})
    app = Labels("app", 185, 186, 1, state="S")
    found.add((WORK, MAIN), (READ,), 5000, app, marks=Marks(ended_ns=9000, runnable=1000))
    found.add((HELP, MAIN), (), 2500, app, marks=Marks(ended_ns=12_500))
    found.add((WORK, MAIN), (READ,), 70_000, app._replace(cpu=-1), marks=Marks(times=12))
    return found


def test_a_wait_is_an_event_and_what_follows_the_wake_up_another() -> None:
    tree = trace(waits())
    found = [(each["name"], each["cat"], each["ts"], each["dur"]) for each in slices(tree)]
    assert sorted(found, key=lambda each: each[2]) == [
        ("vfs_read", "off-CPU", 4.0, 4.0),
        ("run-queue", "run-queue", 8.0, 1.0),
        ("help", "off-CPU", 10.0, 2.5),
    ]
    assert tree["otherData"] == {
        "title": "waits", "unit": "ns", "undated": 70_000, "elapsed_s": 1.5,
    }  # fmt: skip
    (first,) = (each for each in slices(tree) if each["name"] == "vfs_read")
    assert first["args"] == {"stack": ["vfs_read", "work", "main"], "state": "S", "cpu": "1"}


def test_what_was_not_over_lasts_until_the_run_ended() -> None:
    profile = Profile("waits", unit="ns", about={"ended_ns": 20_000})
    profile.add((WORK,), (), 5000, Labels("app", 1), marks=Marks(is_open=True, times=1))
    tree = trace(profile)
    (event,) = slices(tree)
    assert (event["ts"], event["dur"], event["args"]["over"]) == (15.0, 5.0, "no")
    assert tree["otherData"]["undated"] == 0


def test_processes_and_threads_have_names() -> None:
    names = [each for each in trace(waits())["traceEvents"] if each["ph"] == "M"]
    assert {(each["name"], each["pid"], each["tid"]) for each in names} == {
        ("process_name", 185, 186),
        ("thread_name", 185, 186),
    }
    assert {each["args"]["name"] for each in names} == {"app"}


def test_a_frame_that_goes_on_is_one_event() -> None:
    profile = Profile("timed")
    profile.slot_ns = 1_000_000
    owner = Labels("app", 1, 2)
    profile.add((WORK, MAIN), (), 4, owner, ((0, 1), (1, 3)))
    profile.add((HELP, MAIN), (), 3, owner, ((1, 1), (7, 2)))
    found = Counter((each["name"], each["ts"], each["dur"]) for each in slices(trace(profile)))
    assert found == Counter(
        {
            ("main", 0.0, 2000.0): 1,
            ("work", 0.0, 1000.0): 1,
            ("help", 1000.0, 250.0): 1,
            ("work", 1250.0, 750.0): 1,
            ("main", 7000.0, 1000.0): 1,
            ("help", 7000.0, 1000.0): 1,
        }
    )


def test_without_times_stacks_follow_one_another() -> None:
    tree = trace(profiles.example())
    events = slices(tree)
    assert tree["otherData"]["undated"] == 0
    assert nests(events)
    roots = sum(each["dur"] for each in events if each["name"] == START.name)
    assert roots == pytest.approx(1000 * 89), "a millisecond a sample, however they are cut"


@pytest.mark.parametrize("profile", [profiles.timed(), profiles.hostile(), waits(), Profile("")])
def test_events_of_a_thread_never_overlap_by_halves(profile: Profile) -> None:
    assert nests(slices(trace(profile)))
