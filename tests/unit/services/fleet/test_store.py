"""A store from landing to answers: sums equal to a count one by one, whatever happens between."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path

import duckdb
import pytest

from purebpf.results.formats.otlp import Entry, Sample
from purebpf.services.fleet import decode as decoding
from purebpf.services.fleet import duck, ids
from purebpf.services.fleet.answers import Question
from purebpf.services.fleet.compaction import compact
from purebpf.services.fleet.decode import decode
from purebpf.services.fleet.importing import import_files
from purebpf.services.fleet.intake import Intake
from purebpf.services.fleet.keeping import check, prune
from purebpf.services.fleet.landing import land, new_batch_id
from purebpf.services.fleet.rows import Batch, Ids
from purebpf.services.fleet.selection import Selection, SelectionError, parse_range
from purebpf.services.fleet.stores.directory import Directory
from purebpf.services.fleet.stores.store import Store, StoreError
from purebpf.services.fleet.symbolize import Symbolized, symbolize
from purebpf.symbols.elf_image import ElfImage
from purebpf.symbols.elf_names import functions_named
from tests.support.host.deliveries import HOUR, HOUR_S, Sent, Truth, messages, window_message

HOUR_US = HOUR_S * 10**6
ALL = Selection(HOUR_US, HOUR_US + 3_600_000_000)
LATER_S = HOUR_S + 3600 + 700


def quiet(_made: object) -> None:
    """Say nothing."""


@pytest.fixture
def truth() -> Truth:
    return Truth()


def put(store: Store, sent: Sequence[Sent], known: dict[str, Ids] | None = None) -> None:
    """Store messages as one batch."""
    batch = Batch({} if known is None else known)
    for one in sent:
        for delivery in decode(one.data, now_ns=time.time_ns()):
            batch.add(delivery)
    land(store, batch, new_batch_id())
    batch.stored()


def ask(store: Store, selection: Selection = ALL, **options: bool) -> Iterator[Question]:
    with duck.connect(store) as connection:
        yield Question(store, selection, connection, **options)


def agree(store: Store, truth: Truth) -> None:
    """Every answer is what counting one by one gives."""
    for question in ask(store):
        every = question.functions(1000)
        assert question.functions(3) == every._replace(rows=every.rows[:3])
        functions = {row.place.name: row for row in every.rows}
        assert {name: row.own for name, row in functions.items() if row.own} == truth.own
        assert {name: row.total for name, row in functions.items()} == truth.total
        assert question.total() == sum(truth.own.values())
        by_service: dict[str, int] = {}
        for stack in question.stacks():
            by_service[stack.service] = by_service.get(stack.service, 0) + stack.value
        assert by_service == truth.service
    for question in ask(store, by_host=True):
        assert {host.host: host.value for host in question.hosts()} == truth.host
        moments = question.timeline(60_000_000)
        assert sum(moment.value for moment in moments) == sum(truth.own.values())


@pytest.mark.parametrize("batches", [1, 3])
def test_landing_and_compacted_hours_give_the_same_answers(
    any_store: Store, truth: Truth, batches: int
) -> None:
    sent = list(messages(truth))
    for number in range(batches):
        put(any_store, sent[number::batches])
    agree(any_store, truth)
    (made,) = compact(any_store, now_s=LATER_S, say=quiet)
    assert (made.hour, made.batches) == (HOUR, batches)
    agree(any_store, truth)
    assert list(check(any_store, LATER_S)) == []


def test_what_came_twice_counts_once(store: Store, truth: Truth) -> None:
    sent = list(messages(truth))
    put(store, sent)
    put(store, sent[:5])  # its answer was lost
    agree(store, truth)
    compact(store, now_s=LATER_S, say=quiet)
    agree(store, truth)
    put(store, sent[2:9])  # days later
    agree(store, truth)
    compact(store, now_s=LATER_S, say=quiet)
    agree(store, truth)


def test_what_comes_late_is_added(store: Store, truth: Truth) -> None:
    early, late = list(messages(truth)), list(messages(truth, minutes=2, seed=2))
    late = [Sent(one.host, one.minute, one.data) for one in late]
    put(store, early)
    compact(store, now_s=LATER_S, say=quiet)
    for one in late:  # other windows of the same minutes, of agents that were started again
        batch = Batch({})
        for delivery in decode(one.data, now_ns=time.time_ns()):
            window = delivery.window._replace(delivery=delivery.window.delivery ^ 1)
            batch.add(delivery._replace(window=window))
        land(store, batch, new_batch_id())
    agree(store, truth)
    compact(store, now_s=LATER_S, say=quiet)
    agree(store, truth)
    assert list(check(store, LATER_S)) == []


def test_a_batch_without_its_windows_does_not_count(store: Store, truth: Truth) -> None:
    sent = list(messages(truth))
    put(store, sent)
    put(store, list(messages(Truth(), seed=9, hosts=5)))
    last = store.names(f"landing/{HOUR}")[-1]
    assert last.endswith(".windows.parquet")
    store.delete(f"landing/{HOUR}/{last}")  # as after kill -9 before it was written
    agree(store, truth)
    compact(store, now_s=LATER_S, say=quiet)
    agree(store, truth)


def test_an_hour_that_is_not_over_is_left_alone(store: Store, truth: Truth) -> None:
    put(store, list(messages(truth)))
    assert compact(store, now_s=HOUR_S + 3600 + 599, say=quiet) == []
    assert store.manifest(HOUR) is None


def test_landing_goes_after_a_while(any_store: Store, truth: Truth) -> None:
    put(any_store, list(messages(truth)))
    compact(any_store, now_s=LATER_S, say=quiet)
    assert any_store.names(f"landing/{HOUR}")  # readers that began before
    compact(any_store, now_s=time.time() + 1000, say=quiet)
    assert any_store.names("landing") == []
    agree(any_store, truth)


def test_one_compaction_at_a_time(any_store: Store, truth: Truth) -> None:
    put(any_store, list(messages(truth)))
    with any_store.alone(), pytest.raises(StoreError, match="another process compacts"):
        compact(any_store, now_s=LATER_S, say=quiet)
    assert len(compact(any_store, now_s=LATER_S, say=quiet)) == 1


def test_conditions(store: Store, truth: Truth) -> None:
    put(store, list(messages(truth)))
    for where, want in (
        ((("host", "host1"),), truth.host["host1"]),
        ((("service", "web"),), truth.service["web"]),
        ((("service", "it's"),), 0),
        ((("x'; drop table samples; --", "y"),), 0),
    ):
        for question in ask(store, ALL._replace(where=where)):
            assert question.total() == want
    of_a = sum(question.total() for question in ask(store, ALL._replace(where=(("comm", "a"),))))
    of_b = sum(question.total() for question in ask(store, ALL._replace(where=(("comm", "b"),))))
    assert of_a + of_b == sum(truth.own.values())
    assert min(of_a, of_b) > 0


def test_a_part_of_an_hour_takes_its_samples(store: Store, truth: Truth) -> None:
    first = Truth()
    sent = list(messages(first, minutes=1))
    put(store, [*sent, *messages(Truth(), minutes=3, seed=1)][len(sent) :])
    compact(store, now_s=LATER_S, say=quiet)
    minute = Selection(HOUR_US, HOUR_US + 60_000_000)
    for question in ask(store, minute):
        assert question.total() == sum(first.own.values())
        assert question.catalog.rolled == ()
    for question in ask(store):
        assert question.catalog.rolled == (HOUR_US,)


def test_coverage_says_what_is_missing(any_store: Store, truth: Truth) -> None:
    sent = [one for one in messages(truth, minutes=10) if (one.host, one.minute) != ("host1", 4)]
    put(any_store, sent)
    for question in ask(any_store):
        coverage = question.coverage()
        assert (coverage.hosts, coverage.windows, coverage.expected_windows) == (3, 29, 30)
        assert coverage.lost == (("map_full", 29),)
        assert "29 of 30 windows (96.7 %)" in coverage.text()
        assert not coverage.is_whole
    for question in ask(any_store, ALL._replace(kind="offcpu")):
        assert question.coverage().text() == "coverage: no host sent a window in this range"


def test_check_finds_what_is_wrong(any_store: Store, truth: Truth) -> None:
    put(any_store, list(messages(truth)))
    compact(any_store, now_s=LATER_S, say=quiet)
    folder = "rollup/kind=cpu/date=2026-11-22/hour=15"
    any_store.write(f"{folder}/part-9.parquet", b"PAR1")
    (problem,) = check(any_store, LATER_S)
    assert "part-9.parquet is in no manifest" in problem
    any_store.write(f"{folder}/part-1.parquet", b"not Parquet")
    assert any("part-1.parquet" in problem for problem in check(any_store, LATER_S))
    any_store.delete(f"{folder}/part-1.parquet")
    assert any("is missing" in problem for problem in check(any_store, LATER_S))
    any_store.write(f"hours/{HOUR}.json", b"{")
    assert any("is damaged" in problem for problem in check(any_store, LATER_S))


def test_check_misses_stacks(store: Store, truth: Truth) -> None:
    sent = list(messages(truth))
    put(store, sent)
    for name in store.names(f"landing/{HOUR}"):
        if ".stacks." in name:
            store.delete(f"landing/{HOUR}/{name}")
    put(store, sent[:1])
    compact(store, now_s=LATER_S, say=quiet)
    (problem,) = check(store, LATER_S)
    assert re.search(r"2026-11-22: \d\d+ stacks of samples, 0 frames", problem)


@pytest.mark.parametrize("compacted", [False, True])
def test_a_frame_that_is_named_later(any_store: Store, compacted: bool) -> None:
    """Its number stays, and the row with the name is the one that counts."""
    stack = (Entry("", "libx.so", "user", "ab12", 4096),)
    known: dict[str, Ids] = {}
    message = window_message("h", 0, {"s": {Sample("a", stack): 1}})
    put(any_store, [Sent("h", 0, message)], known)
    if compacted:
        compact(any_store, now_s=LATER_S, say=quiet)
    (delivery,) = decode(message, now_ns=time.time_ns())
    (frame,) = delivery.frames.values()
    named = frame._replace(function="compress", file_offset=-1)
    window = delivery.window._replace(delivery=1, ts_us=delivery.window.ts_us + 60_000_000)
    batch = Batch({})
    later = delivery._replace(window=window, samples=[], frames={named.frame: named})
    batch.add(later)
    land(any_store, batch, new_batch_id())
    for _ in range(2):
        for question in ask(any_store):
            (function,) = question.functions(10).rows
            assert function.place.name == "compress"
            assert question.stacks()[0].frames[0].name == "compress"
        compact(any_store, now_s=LATER_S, say=quiet)


class DebugFiles:
    """A server that has everything: programs by build id, and their debug files."""

    def __init__(self) -> None:
        self.programs: dict[str, str] = {}
        self.debug: dict[str, str] = {}
        self.asked: list[str] = []

    def __call__(self, build_id: str) -> str | None:
        self.asked.append(build_id)
        return self.debug.get(build_id)

    def executable(self, build_id: str) -> str | None:
        self.asked.append(build_id)
        return self.programs.get(build_id)


_TWO = """
__attribute__((noinline)) int encode(int x) { volatile int y = x; return y * 3; }
__attribute__((noinline)) int decode(int x) { volatile int y = x; return y / 3; }
int main(int argc, char **argv) { return encode(argc) + decode(argc); }
"""


@pytest.mark.needs("gcc", "objcopy", "nm")
@pytest.mark.parametrize("flags", ["-pie", "-no-pie"])
def test_debug_files_name_what_hosts_could_not(store: Store, tmp_path: Path, flags: str) -> None:
    """A function with and without symbols is one; what servers lack or cannot be a build stays."""
    program, debug = tmp_path / "x.so", tmp_path / "x.debug"
    (tmp_path / "x.c").write_text(_TWO)
    build = ["gcc", "-O2", flags, "-Wl,--build-id=sha1", "-o", program, tmp_path / "x.c"]
    subprocess.run(build, check=True)
    image = ElfImage.of_bytes(program.read_bytes())
    starts = functions_named(image, {"encode", "decode"}.__contains__)
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", program], check=True)
    files = DebugFiles()
    files.programs[image.build_id], files.debug[image.build_id] = str(program), str(debug)

    def place(offset: int, build_id: str = image.build_id) -> Entry:
        return Entry("", "x.so", "user", build_id, offset)

    unknown, hostile = place(64, "ab" * 20), place(64, "../../etc/passwd")
    stacks: dict[tuple[Entry, ...], int] = {
        (place(starts["encode"]), unknown): 1,
        (Entry("encode", "x.so", "user"), unknown): 2,  # of a host that has the symbols
        (place(starts["decode"] + 2), hostile): 4,
        # named after where it starts, as agents name it
        (Entry("x.so!0x99", "x.so", "user", image.build_id, starts["decode"]), hostile): 8,
    }
    samples = {Sample("a", stack): n for stack, n in stacks.items()}
    put(store, [Sent("h", 0, window_message("h", 0, {"s": samples}))])
    for number in range(3):
        done = symbolize(store, ALL.since_us, ALL.until_us, files)
        assert done == (Symbolized(4, 3, 2, 1) if number == 0 else Symbolized(1, 0, 1, 1))
        for question in ask(store):
            rows = question.functions(10).rows
            own = {row.place.name: row.own // 52_631_579 for row in rows if row.own}
            assert own == {"decode": 12, "encode": 3}
            leaves = {stack.frames[0].name for stack in question.stacks()}
            assert leaves == {"encode", "decode"}
        if number == 1:
            compact(store, now_s=LATER_S, say=quiet)
    assert {*files.asked} == {image.build_id, unknown.build_id}
    assert list(check(store, LATER_S)) == []


def test_numbers_that_collide_merge_and_lose_nothing(
    store: Store, truth: Truth, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = ids._number  # noqa: SLF001
    monkeypatch.setattr(ids, "_number", lambda data: whole(data) & 0x3F)
    sent = [
        Sent(one.host, one.minute, window_message(one.host, one.minute, {"s": samples}))
        for one, samples in _with_samples(truth)
    ]
    monkeypatch.setattr(decoding, "text_id", _counting())  # each delivery is one
    put(store, sent)
    for _ in range(2):
        for question in ask(store):
            assert question.total() == sum(truth.own.values())
            assert sum(row.own for row in question.functions(1000).rows) == question.total()
            assert len(question.stacks()) < 64
        compact(store, now_s=LATER_S, say=quiet)


def _with_samples(truth: Truth) -> Iterator[tuple[Sent, dict[Sample, int]]]:
    chance = random.Random(3)
    names = [Entry(f"f{number}", "m", "user") for number in range(500)]
    for minute in range(5):
        samples = {
            Sample("a", tuple(chance.sample(names, 5))): chance.randint(1, 9) for _ in range(80)
        }
        for sample, number in samples.items():
            truth.add("h", "s", sample.stack, number)
        yield Sent("h", minute, b""), samples


def _counting() -> Callable[[object], int]:
    numbers = count(1)
    return lambda _words: next(numbers)


def test_prune_leaves_the_days_to_keep(any_store: Store, truth: Truth) -> None:
    put(any_store, list(messages(truth)))
    compact(any_store, now_s=LATER_S, say=quiet)
    assert prune(any_store, 1, HOUR_S + 86400) == []
    agree(any_store, truth)
    assert prune(any_store, 1, HOUR_S + 3 * 86400) == ["2026-11-22"]
    tables = ("landing", "hours", "samples/kind=cpu", "rollup/kind=cpu", "stacks", "frames")
    assert [any_store.names(table) for table in tables] == [[]] * len(tables)
    any_store.write("kept", b"")  # a bucket without objects is taken for a mistyped one
    for question in ask(any_store):
        assert question.total() == 0


def test_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no such directory"):
        compact(Directory(str(tmp_path / "none")), now_s=0, say=quiet)


@pytest.mark.parametrize(
    ("since", "until", "want"),
    [
        ("1h", "now", (6400, 10_000)),
        ("90m", "30m", (4600, 8200)),
        ("1970-01-01T00:10", "1970-01-01T00:20:00+00:00", (600, 1200)),
    ],
)
def test_ranges(since: str, until: str, want: tuple[int, int]) -> None:
    start, end = parse_range(since, until, 10_000)
    assert (start // 10**6, end // 10**6) == want


@pytest.mark.parametrize(("since", "until"), [("1h", "2h"), ("soon", "now"), ("1..5h", "now")])
def test_no_ranges(since: str, until: str) -> None:
    with pytest.raises(SelectionError):
        parse_range(since, until, 10_000)


# The intake


def test_an_answer_waits_for_its_batch(store: Store, truth: Truth) -> None:
    sent = list(messages(truth))

    async def run() -> Intake:
        intake = Intake(store, pause_s=0.05, say=print)
        adds = [intake.add(decode(one.data, now_ns=time.time_ns())) for one in sent + sent[:4]]
        await asyncio.gather(*adds)
        assert len(store.names(f"landing/{HOUR}")) == 5  # one batch, all of it on disk
        await intake.add(decode(sent[0].data, now_ns=time.time_ns()))
        return intake

    done = asyncio.run(run()).tally
    assert (done.deliveries, done.repeated, done.batches) == (len(sent), 1, 1)
    agree(store, truth)


def test_a_full_disk_is_an_error_and_is_tried_again(
    any_store: Store, truth: Truth, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = list(messages(truth))
    full = True
    write = type(any_store).write

    def fail(self: Store, name: str, data: bytes) -> None:
        if full and "stacks" not in name:  # some files of the batch are written
            raise OSError(errno.ENOSPC, "No space left on device")
        write(self, name, data)

    monkeypatch.setattr(type(any_store), "write", fail)
    said: list[str] = []

    async def run() -> None:
        nonlocal full
        intake = Intake(any_store, pause_s=0, say=said.append)
        deliveries = [decode(one.data, now_ns=time.time_ns()) for one in sent]
        for one in deliveries:
            with pytest.raises(OSError, match="No space left"):
                await intake.add(one)
        full = False
        await asyncio.gather(*map(intake.add, deliveries))
        assert intake.tally.failed_batches == len(sent)

    asyncio.run(run())
    assert said
    agree(any_store, truth)


def test_a_question_that_needs_more_memory_gets_it(store: Store) -> None:
    """Five million stacks are too many for 700 MB: what sums have in use is not spilled."""
    statement = "select length(string_agg(i::varchar, ',')) from range(6000000) as t(i)"
    with duck.connect(store, "40MB") as connection:
        assert duck.rows(connection, statement) == [(46888889,)]
        duck.run(connection, f"create temp table made as {statement}")
    with duck.connect(store, "40MB") as connection, pytest.raises(duckdb.OutOfMemoryException):
        connection.sql(statement).fetchall()


def test_a_profile_with_a_name_beyond_text_is_imported(store: Store, tmp_path: Path) -> None:
    profile = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.folded")
    Path(profile).write_text("main;work 7\n")
    assert import_files(store, [profile]) == (1, 1)
