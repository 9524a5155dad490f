"""A profile as samples of services: functions, and sums that stay."""

from __future__ import annotations

from purebpf.results import Labels, Profile
from purebpf.results.build.offcpu_rows import Place, Span, merge_spans
from purebpf.results.formats.otlp import Entry, Sample
from purebpf.results.formats.otlp_series import series_of
from purebpf.results.model.profile import Marks
from purebpf.services.agent.rows import off_cpu, on_cpu, run_queue, without_threads
from purebpf.symbols.frame import Address, FileOffset, Frame, Reason, Unknown


def frame(name: str, address: int) -> Frame:
    return Frame(name, address & 15, "/usr/bin/shop", Address(address), "user", "ab", FileOffset(1))


KERNEL = Frame("schedule", 3, "kernel", Address(1 << 63), "kernel")
STRIPPED = Unknown(
    Reason.STRIPPED, "/lib/libz.so", Address(5), "user", "", "cd" * 20, FileOffset(0x77)
)
GONE = Unknown(Reason.EXITED, "", Address(6), "user")


def resource(labels: Labels) -> tuple[tuple[str, str | int], ...]:
    return (("service.name", f"service{labels.pid % 2}"),)


def test_equal_functions_of_a_service_are_one_sample_whatever_their_processes() -> None:
    profile = Profile()
    profile.add((frame("f", 1), frame("main", 2)), (KERNEL,), 5, Labels("a", 1))
    profile.add((frame("f", 9), frame("main", 8)), (KERNEL,), 7, Labels("a", 3))
    profile.add((frame("f", 9), frame("main", 8)), (KERNEL,), 1, Labels("b", 3))
    profile.add((STRIPPED, GONE), (), 2, Labels("a", 2))
    profile.add(None, None, 3, Labels("a", 2))
    even, odd = series_of(on_cpu(profile), resource)
    stack = (
        Entry("schedule", "kernel", "kernel"),
        Entry("f", "shop", "user"),
        Entry("main", "shop", "user"),
    )
    assert odd.samples == {Sample("a", stack): 12, Sample("b", stack): 1}
    assert even.samples == {
        Sample(
            "a", (Entry("", "libz.so", "user", "cd" * 20, 0x77), Entry("[exited]", "", "user"))
        ): 2,
        Sample("a", (Entry("[lost]", "", "kernel"), Entry("[lost]", "", "user"))): 3,
    }
    assert sum(sum(each.samples.values()) for each in (even, odd)) == profile.total


def test_time_off_the_cpu_and_in_the_run_queue_add_up() -> None:
    profile = Profile(unit="ns")
    profile.add((), (), 100, Labels("a", 1, state="S"), marks=Marks(runnable=30))
    profile.add((), (), 50, Labels("a", 1, state="R"), marks=Marks(runnable=50))
    profile.add((), (), 7, Labels("a", 1, state="D"), marks=Marks(runnable=-1))
    assert [weight for _, weight in off_cpu(profile)] == [7, 70]
    assert sorted(weight for _, weight in run_queue(profile)) == [30, 50]


def test_threads_of_a_process_are_one_row() -> None:
    """No message has the numbers of threads."""
    place = Place("python", 7, 71, "G", 1, 2, holder=72)
    spans = {
        place: Span(1, 10, 1),
        place._replace(tid=72, holder=71, is_open=True): Span(2, 20, 2),
        place._replace(state="S", holder=0): Span(1, 5, 0),
    }
    merged = merge_spans(without_threads(spans))
    assert not spans
    assert {(at.state, at.tid, at.holder): span[:3] for at, span in merged.items()} == {
        ("G", 0, 0): (3, 30, 3),
        ("S", 0, 0): (1, 5, 0),
    }
