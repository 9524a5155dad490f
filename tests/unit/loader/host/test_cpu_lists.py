"""CPU lists, and perf events by name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purebpf.abi.perf import perf_type_id
from purebpf.errors import FormatError
from purebpf.loader.host import cpus
from purebpf.loader.perf.perf_names import Event, event_named


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("0", (0,)), ("0-3\n", (0, 1, 2, 3)), ("0,2-3,8", (0, 2, 3, 8)), ("", ()), ("\n", ())],
)
def test_a_cpu_list(text: str, numbers: tuple[int, ...]) -> None:
    assert cpus.parse(text) == numbers


@given(numbers=st.sets(st.integers(0, 4096)))
def test_a_list_of_single_numbers_is_read_back(numbers: set[int]) -> None:
    assert cpus.parse(",".join(map(str, sorted(numbers)))) == tuple(sorted(numbers))


@pytest.mark.parametrize("text", ["a", "1-", "-1", "1-2-3", "0x1", "1 2"])
def test_text_that_is_not_a_cpu_list_is_refused(text: str) -> None:
    with pytest.raises(FormatError, match="is not a number or a range"):
        cpus.parse(text)


@pytest.mark.parametrize(
    ("name", "type_", "config"),
    [
        ("cpu-cycles", perf_type_id.PERF_TYPE_HARDWARE, 0),
        ("cycles", perf_type_id.PERF_TYPE_HARDWARE, 0),
        ("branches", perf_type_id.PERF_TYPE_HARDWARE, 4),
        ("cpu-clock", perf_type_id.PERF_TYPE_SOFTWARE, 0),
        ("faults", perf_type_id.PERF_TYPE_SOFTWARE, 2),
        ("major-faults", perf_type_id.PERF_TYPE_SOFTWARE, 6),
        ("cs", perf_type_id.PERF_TYPE_SOFTWARE, 3),
        ("bpf-output", perf_type_id.PERF_TYPE_SOFTWARE, 10),
        ("L1-dcache-loads", perf_type_id.PERF_TYPE_HW_CACHE, 0x00000),
        ("LLC-store-misses", perf_type_id.PERF_TYPE_HW_CACHE, 0x10102),
        ("iTLB-prefetches", perf_type_id.PERF_TYPE_HW_CACHE, 0x00204),
        ("r01c2", perf_type_id.PERF_TYPE_RAW, 0x1C2),
    ],
)
def test_events_have_the_numbers_of_the_kernel(name: str, type_: int, config: int) -> None:
    assert event_named(name) == Event(name, type_, config)


def test_an_event_that_replaces_another_says_so() -> None:
    event = event_named("cpu-clock")
    assert not event.fell_back
    assert event._replace(asked="cpu-cycles", why_not="ENOENT").fell_back
