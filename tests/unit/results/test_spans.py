"""Time as rows: the layouts of waits, to the letter, and what is left out of their stacks."""

from __future__ import annotations

import json as reader

from hypothesis import given
from hypothesis import strategies as st

from purebpf.cli.destination import ResultOptions
from purebpf.results import Labels, Marks, Profile
from purebpf.results.build.offcpu_rows import Place, Span, SpanWaker, fill, merge_spans
from purebpf.results.build.stored_stacks import Stacks
from purebpf.results.build.strip_sched_frames import without_switch
from purebpf.results.formats import folded, json
from purebpf.symbols.frame import Address, Frame, Reason, Unknown
from purebpf.tools.offcpu.render import render
from purebpf.tools.wall.render import render as render_wall
from purebpf.tools.wall.threads import Thread, shares, threads
from purebpf.tools.wall.threads import fill as fill_wall


def kernel(name: str, module: str = "kernel") -> Frame:
    return Frame(name, 0x10, module, Address(1), "kernel")


def user(name: str) -> Frame:
    return Frame(name, 0x10, "/srv/app", Address(2), "user")


class Names:
    """Names that are their addresses."""

    def kernel_stack(self, addresses):  # type: ignore[no-untyped-def]
        return [kernel(f"k{address}") for address in addresses]

    def user_stack(self, pid, addresses, comm=None):  # type: ignore[no-untyped-def]
        return [user(f"u{address}") for address in addresses]


STACKS = Stacks({16: (1, 2), 17: (3,), 18: (4,)}, Names())
WAITER = Place("app", 7, 8, "S", 17, 16, SpanWaker("other", 9, 9, 18, 0))
CGROUPS = {5: "", 7: "web.service"}
OPEN = Place("app", 7, 7, "D", 17, 0, is_open=True)

TEXT = """\
    k1 [kernel]
    k2 [kernel]
    --
    u3 [app]
    -                app (7/8) S
    woken by         other (9/9)
    u4 [app]
        5  (3 blocked, 1 run queue)

    u3 [app]
    -                app (7/7) D
        ~2000  (2000 blocked, 0 run queue)

"""

WALL = """\
     wall   on-CPU  off-CPU run-queue  thread
   100 us    50.0%    40.0%     10.0%  app (7/8)

"""


def profile() -> Profile:
    found = Profile(unit="ns")
    spans = {WAITER: Span(2, 3_900, 1_900), OPEN: Span(1, 2_000_000, 0)}
    fill(found, spans, STACKS, CGROUPS.__getitem__, is_split=True)
    return found


def test_the_text_has_the_stacks_of_each_wait() -> None:
    assert "".join(render(profile(), ResultOptions(delimited=True, offsets=False), "text")) == TEXT


def test_folded_waits_are_scaled() -> None:
    assert list(folded.lines(profile(), scale=1000)) == [
        "app;u3;k2;k1;--;u4;other 5\n",
        "app;u3 2000\n",
    ]


def test_the_json_of_waits_is_read_back_the_same() -> None:
    found = profile()
    found.add((user("u3"),), (), 5800, Labels("app", 7, 8), marks=Marks(ended_ns=5, times=1))
    assert json.document(json.parse(json.document(found))) == json.document(found)
    tree = reader.loads(json.document(found, threads=[]))
    waiting, still = tree["stacks"]
    assert (waiting["state"], waiting["cgroup"]) == ("S", "web.service")
    assert waiting["times"] == 2
    assert waiting["runnable"] == 1900
    assert waiting["waker"] == {"comm": "other", "pid": 9, "tid": 9, "user": [3], "kernel": []}
    assert "inflight" not in waiting
    assert still["inflight"] is True
    assert tree["samples"][0]["time_ns"] == 5
    assert tree["total"] == found.total == 5800 + 5800 + 2_000_000
    assert tree["threads"] == []


def test_a_profile_without_waits_reads_as_before() -> None:
    found = Profile()
    found.add((user("main"),), (), 1, Labels("app", 7))
    assert reader.loads(json.document(found))["stacks"] == [
        {"weight": 1, "comm": "app", "pid": 7, "user": [0], "kernel": []}
    ]


def test_wakers_that_are_not_known_are_left_out() -> None:
    found = Profile()
    place = WAITER._replace(waker=SpanWaker("", 0, 0, 0, 0))
    fill(found, {place: Span(1, 1, 0)}, STACKS, CGROUPS.__getitem__, is_split=True)
    assert found.rows()[0].marks.waker is None


@given(st.lists(st.tuples(st.sampled_from([WAITER, OPEN]), st.integers(0, 10**12)), max_size=9))
def test_merging_keeps_the_total(pairs: list[tuple[Place, int]]) -> None:
    found = merge_spans((place, Span(1, blocked, 1)) for place, blocked in pairs)
    assert sum(span.duration_ns for span in found.values()) == sum(n + 1 for _, n in pairs)
    assert sum(span.times for span in found.values()) == len(pairs)


def test_tracing_and_switching_are_left_out() -> None:
    leading = (
        kernel("bpf_prog_6896d07dd3e1383c_on_switch", "[bpf]"),
        kernel("bpf_trace_run4"),
        kernel("__bpf_trace_sched_switch"),
        kernel("__traceiter_sched_switch"),
        kernel("__schedule"),
        kernel("schedule"),
    )
    rest = (kernel("schedule_timeout"), kernel("schedule"), kernel("do_poll"))
    assert without_switch(leading + rest) == rest
    nameless = Unknown(Reason.NO_KERNEL_FUNCTION, "", Address(1), "kernel")
    assert without_switch((*leading, nameless)) == (nameless,)
    assert without_switch(leading) == leading
    assert without_switch(()) == ()
    assert without_switch(None) is None
    for name in ("finish_task_switch.isra.0", "preempt_schedule_irq", "__schedule.constprop.0"):
        assert without_switch((kernel(name), rest[0])) == rest[:1]
    for name in ("schedule_hrtimeout_range", "io_schedule", "__mutex_lock.constprop.0"):
        assert without_switch((kernel(name),)) == (kernel(name),)


@given(
    st.integers(0, 10**15),
    st.dictionaries(st.integers(1, 9), st.integers(1, 10**6), min_size=1),
)
def test_shares_add_up(total: int, weights: dict[int, int]) -> None:
    places = {WAITER._replace(tid=tid): weight for tid, weight in weights.items()}
    found = shares(total, places)
    assert sum(found.values()) == total
    assert found.keys() == places.keys()
    for place, part in found.items():
        assert abs(part - total * places[place] / sum(weights.values())) <= 1 + total / 2**50


def test_a_threads_rows_add_up() -> None:
    spans = {
        Place("app", 7, 8, "+", 0, 0): Span(3, 50_001, 0),
        Place("app", 7, 8, "S", 17, 16): Span(2, 40_000, 9_000),
        Place("app", 7, 8, "R", 17, 16): Span(1, 0, 1_000),
        Place("once", 5, 5, "+", 0, 0): Span(1, 10, 0),
    }
    samples = {Place("app", 7, 8, "+", 17, 0): 2, Place("app", 7, 8, "+", 18, 0): 1}
    found = Profile()
    assert fill_wall(found, spans, samples, STACKS, CGROUPS.__getitem__) == 10
    weights: dict[str, int] = {}
    for row in found.rows():
        assert row.labels.cgroup == CGROUPS[row.labels.pid]
        if row.labels.tid == 8:
            weights[row.marks.kind] = weights.get(row.marks.kind, 0) + row.weight
    assert weights == {"on-CPU": 50_001, "off-CPU": 40_000, "run-queue": 10_000}
    assert threads(spans) == [
        Thread(Labels("app", 7, 8), 50_001, 40_000, 10_000),
        Thread(Labels("once", 5, 5), 10, 0, 0),
    ]


def test_the_text_of_waits_is_the_answer_with_units_unless_details_are_asked_for() -> None:
    waits = Profile(unit="ns")
    stack = (user("work"), user("main"))
    waits.add(stack, (kernel("schedule"),), 1_410_000_000, Labels("app", 7, 8, state="S"))
    waits.add(stack, (kernel("io_schedule"),), 90_000_000, Labels("app", 7, 9, state="D"))
    text = "".join(map(str, render(waits, ResultOptions(offsets=False), "text")))
    assert text.startswith("  90.0 ms  100 %  1 thread   waits for the disk in work [app]\n")
    assert "idle, waiting for something to do: 1.41 s\n" in text
    assert text.endswith("app (7) D\n        100.0 %  90.0 ms\n\n")
    blocks = "".join(map(str, render(waits, ResultOptions(offsets=False, layout="bcc"), "text")))
    assert blocks.endswith("app (7/8) S\n        1410000\n\n")


def test_the_table_of_threads() -> None:
    found = [
        Thread(Labels("app", 7, 8), 50_000, 40_000, 10_000),
        Thread(Labels("x", 1, 1), 0, 0, 0),
    ]
    assert (
        "".join(render_wall(Profile(), found, ResultOptions(top=1, offsets=False), "text")) == WALL
    )


def test_folded_marks_each_frame() -> None:
    found = Profile()
    spans = {Place("app", 7, 8, "S", 17, 16): Span(1, 2_000, 1_000)}
    fill_wall(found, spans, {}, STACKS, CGROUPS.__getitem__)
    spans = {Place("app", 7, 8, "+", 0, 0): Span(1, 3_000, 0)}
    fill_wall(found, spans, {}, STACKS, CGROUPS.__getitem__)
    assert list(folded.lines(found, scale=1000, by_thread=True)) == [
        "app/8;u3_[rq];k2_[rq];k1_[rq] 1\n",
        "app/8;u3_[off];k2_[off];k1_[off] 2\n",
        "app/8;[no stack]_[on] 3\n",
    ]
