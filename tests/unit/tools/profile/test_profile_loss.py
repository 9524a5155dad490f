"""From counters to causes."""

from __future__ import annotations

import pytest

from purebpf.loader.perf.perf_event import Reading
from purebpf.results import Loss
from purebpf.tools.profile.loss import Clock, count_asleep, expected_samples, losses
from purebpf.tools.profile.request import ProfileOptions

FIELDS = (
    *(
        "seen",
        "outside_namespace",
        "counts_full",
        "counts_busy",
        "stacks_full",
        "stacks_busy",
        "stacks_crowded",
    ),
    *("user_truncated", "kernel_truncated", "user_unavailable", "kernel_unavailable"),
)


def found(
    side_band_lost: int = 0, max_depth: int = 127, children_missed: int | None = None, **stats: int
) -> Loss:
    counters = dict.fromkeys(FIELDS, 0) | stats
    options = ProfileOptions(hash_storage_size=100, stack_storage_size=50)
    return losses(
        counters,
        options,
        expected=90,
        tolerance=2,
        max_depth=max_depth,
        side_band_lost=side_band_lost,
        children_missed=children_missed,
    )


def reading(value: int, enabled_ns: int) -> Reading:
    return Reading(value, enabled_ns, enabled_ns, 1, 0)


def test_every_cause_is_named_when_nothing_is_lost() -> None:
    loss = found(seen=90)
    assert [cause.name for cause in loss.causes] == [
        *("map_full", "map_busy", "stacks_lost", "truncated", "unavailable"),
        *("outside_namespace", "sideband_lost"),
    ]
    assert not loss.any


@pytest.mark.parametrize(
    ("counter", "cause", "advice"),
    [
        (
            "counts_full",
            "map_full",
            "7 samples (table of counts full: --hash-storage-size 200)",
        ),
        ("counts_busy", "map_busy", "Lower -F"),
        (
            "stacks_full",
            "stacks_lost",
            "7 samples without their stack (table full: --stack-storage-size 100)",
        ),
        ("stacks_crowded", "stacks_lost", "7 lost their stack: too many others have the same hash"),
        ("stacks_busy", "stacks_lost", "Lower -F"),
        ("user_truncated", "truncated", "callers in 7 user stacks: 127 frames are kept"),
        ("user_truncated", "truncated", "--call-graph deep: 1024"),
        ("kernel_truncated", "truncated", "callers in 7 kernel stacks: 127 frames are kept"),
        ("user_unavailable", "unavailable", "7 user and 0 kernel"),
        ("kernel_unavailable", "unavailable", "0 user and 7 kernel"),
    ],
)
def test_each_counter_is_a_loss(counter: str, cause: str, advice: str) -> None:
    loss = found(seen=90, **{counter: 7})
    assert loss.any
    (named,) = (each for each in loss.causes if each.lost)
    assert (named.name, named.lost) == (cause, 7)
    assert advice in named.what


def test_a_lower_depth_names_the_sysctl() -> None:
    loss = found(seen=90, user_truncated=1, max_depth=16)
    assert "sysctl kernel.perf_event_max_stack=127" in loss.causes[3].what


def test_children_that_were_not_followed_are_a_loss() -> None:
    assert found(seen=90, children_missed=3).causes[-1][:2] == ("children_missed", 3)
    assert found(seen=90, children_missed=3).any
    assert not found(seen=90, children_missed=0).any


def test_lost_side_band_records_are_a_loss() -> None:
    assert found(seen=90, side_band_lost=1).any


@pytest.mark.parametrize(
    ("clock", "expected"),
    [
        # two CPUs, a second each, at 49 Hz: the kernel's period is 20,408,163 ns
        (Clock(is_time=True, frequency=49, period=None), 49 + 48),
        (Clock(is_time=True, frequency=49, period=1_000_000), 1000 + 999),
        # cycles with a frequency: the kernel adapts the period, so only the time tells
        (Clock(is_time=False, frequency=49, period=None), 49 + 98),
        (Clock(is_time=False, frequency=49, period=500_000_000), 2 + 1),
    ],
)
def test_expected_samples_follow_from_the_time_enabled(clock: Clock, expected: int) -> None:
    counts = (reading(1_000_000_000, 1_000_000_000), reading(999_000_000, 2_000_000_000))
    assert expected_samples(clock, counts) == expected


AT_50_HZ = Clock(is_time=True, frequency=50, period=None)


@pytest.mark.parametrize(
    ("missed", "idle_s", "idle_seen", "asleep"),
    [
        (900, 20.0, 100, 900),  # two CPUs slept for ten seconds, and were woken 100 times
        (900, 0.0, 0, 0),  # busy, and throttled: a loss
        (900, 10.0, 480, 20),  # idle for half of the time, sampled there: the rest is a loss
        (900, 10.0, 600, 0),  # /proc/stat is right to 10 ms
        (3, 20.0, 100, 3),
        (0, 20.0, 1000, 0),
    ],
)
def test_samples_due_while_a_cpu_sleeps_are_not_missed(
    missed: int, idle_s: float, idle_seen: int, asleep: int
) -> None:
    assert count_asleep(AT_50_HZ, missed, idle_s, idle_seen) == asleep
    by_period = Clock(is_time=True, frequency=49, period=20_000_000)
    assert count_asleep(by_period, missed, idle_s, idle_seen) == asleep


def test_cycles_are_not_due_while_a_cpu_sleeps() -> None:
    assert count_asleep(AT_50_HZ._replace(is_time=False), 900, 20.0, 0) == 0
