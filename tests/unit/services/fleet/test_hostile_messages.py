"""Messages of a token holder who means harm: refused, or harmless to what others sent."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import (
    ExportProfilesServiceRequest,
)

from purebpf.services.fleet import duck, intake
from purebpf.services.fleet.answers import Question
from purebpf.services.fleet.compaction import compact
from purebpf.services.fleet.decode import RefusedError, decode
from purebpf.services.fleet.intake import Intake
from purebpf.services.fleet.rows import Delivery
from purebpf.services.fleet.selection import Selection
from purebpf.services.fleet.stores.directory import Directory
from tests.support.host.deliveries import HOUR_S, PERIOD_NS

NOW_NS = (HOUR_S + 120) * 10**9
CPU_S = 3.0
"""A message of 16 MiB may take that; the machine's load does not count."""
MOST = 2**63 - 1


def message() -> Any:
    """One with a function, and the first entry of each table, which means nothing."""
    tree = ExportProfilesServiceRequest()
    tables = tree.dictionary
    tables.string_table.extend(["", "samples", "count", "work"])
    for table in (
        *(tables.mapping_table, tables.location_table, tables.function_table),
        *(tables.stack_table, tables.attribute_table),
    ):
        table.add()
    tables.function_table.add().name_strindex = 3
    tables.location_table.add().lines.add().function_index = 1
    tables.stack_table.add().location_indices.append(1)
    label = tree.resource_profiles.add().resource.attributes.add()
    label.key, label.value.string_value = "host.name", "h1"
    tree.resource_profiles[0].scope_profiles.add()
    return tree


def add_profile(tree: Any, identity: bytes = b"a", *, started_ns: int = HOUR_S * 10**9) -> Any:
    profile = tree.resource_profiles[0].scope_profiles[0].profiles.add()
    profile.time_unix_nano, profile.duration_nano = started_ns, 60 * 10**9
    profile.period, profile.profile_id = PERIOD_NS, identity
    profile.sample_type.type_strindex, profile.sample_type.unit_strindex = 1, 2
    add_sample(profile)
    return profile


def add_sample(profile: Any, stack: int = 1, value: int = 1) -> Any:
    sample = profile.samples.add()
    sample.stack_index = stack
    sample.values.append(value)
    return sample


def inlined_functions(tree: Any) -> None:
    """A place with 20,000 functions, 4,096 times in a stack."""
    place = tree.dictionary.location_table.add()
    for _ in range(20_000):
        place.lines.add().function_index = 1
    tree.dictionary.stack_table[1].location_indices[:] = [2] * 4096
    add_profile(tree)


def functions_of_a_place(tree: Any) -> None:
    """Stacks within the limit, of places with a hundred functions each."""
    place = tree.dictionary.location_table.add()
    for _ in range(100):
        place.lines.add().function_index = 1
    profile = add_profile(tree)
    for number in range(1100):
        stack = tree.dictionary.stack_table.add().location_indices
        stack.extend([2] * 40 + [1] * (number // 40) + [0] * (number % 40))
        add_sample(profile, number + 2)


def attributes_of_a_mapping(tree: Any) -> None:
    """A file with 200,000 attributes, and 4,000 places in it."""
    tree.dictionary.attribute_table.add().key_strindex = 3
    tree.dictionary.mapping_table.add().attribute_indices.extend([1] * 200_000)
    for number in range(4000):
        place = tree.dictionary.location_table.add()
        place.mapping_index, place.address = 1, number
    tree.dictionary.stack_table[1].location_indices[:] = range(2, 4002)
    add_profile(tree)


def windows(tree: Any) -> None:
    """20,000 windows of one deep stack."""
    for number in range(4000):
        tree.dictionary.location_table.add().address = number
    tree.dictionary.stack_table[1].location_indices[:] = range(2, 4002)
    for number in range(20_000):
        add_profile(tree, number.to_bytes(16, "big"))


def long_labels(tree: Any) -> None:
    """Labels of 60 kB, and a million names of threads."""
    for number in range(60):
        label = tree.resource_profiles[0].resource.attributes.add()
        label.key, label.value.string_value = f"label{number}", "v" * 1000
    tree.dictionary.string_table.append("thread.name")
    for number in range(100_000):
        attribute = tree.dictionary.attribute_table.add()
        attribute.key_strindex = 4
        attribute.value.int_value = number
    profile = add_profile(tree)
    for number in range(100_000):
        add_sample(profile).attribute_indices.append(number + 1)


@pytest.mark.parametrize(
    ("attack", "why"),
    [
        (inlined_functions, "a stack of more than 4096 frames"),
        (functions_of_a_place, "too much for one message"),
        (windows, "too much for one message|profiles in a message"),
        (long_labels, "too much for one message"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_grows_beyond_its_bytes_is_refused(attack: Callable[[Any], None], why: str) -> None:
    tree = message()
    attack(tree)
    data = tree.SerializeToString()
    began = time.process_time()
    with pytest.raises(RefusedError, match=why):
        decode(data, now_ns=NOW_NS)
    assert time.process_time() - began < CPU_S


def test_attributes_of_a_file_are_read_once() -> None:
    tree = message()
    attributes_of_a_mapping(tree)
    data = tree.SerializeToString()
    began = time.process_time()
    (delivery,) = decode(data, now_ns=NOW_NS)
    assert len(delivery.frames) == 4000
    assert time.process_time() - began < CPU_S


def test_a_window_of_long_ago_is_refused_where_hosts_send() -> None:
    tree = message()
    add_profile(tree, started_ns=10**9)
    data = tree.SerializeToString()
    assert decode(data, now_ns=NOW_NS)
    with pytest.raises(RefusedError, match="began 20779 days ago: 31 at most"):
        decode(data, now_ns=NOW_NS, oldest_ns=NOW_NS - 31 * 86400 * 10**9)


@pytest.mark.parametrize("sent_ns", [-(10**20), 253402300799 * 10**9])
def test_no_clock_is_too_far_off_to_be_stored(sent_ns: int) -> None:
    tree = message()
    add_profile(tree)
    (delivery,) = decode(tree.SerializeToString(), sent_ns=sent_ns, now_ns=NOW_NS)
    assert -(2**62) <= delivery.window.clock_offset_ns <= 2**62


def add_fact(tree: Any, profile: Any, name: str, value: int) -> None:
    tables = tree.dictionary
    tables.string_table.append(name)
    attribute = tables.attribute_table.add()
    attribute.key_strindex = len(tables.string_table) - 1
    attribute.value.int_value = value
    profile.attribute_indices.append(len(tables.attribute_table) - 1)


def poison(number: int) -> bytes:
    """A window in which each number is as high as it goes."""
    tree = message()
    profile = add_profile(tree, number.to_bytes(16, "big"))
    profile.period = 1
    profile.samples[0].values[0] = (1 << 56) - 1
    profile.duration_nano = 1 << 56
    for name in ("expected", "seen", "unknown_ppm", "agent_cpu_ns", "dropped_windows", "lost.ring"):
        add_fact(tree, profile, f"purebpf.{name}", MOST - (number if name[0] == "d" else 0))
    return bytes(tree.SerializeToString())


def take(store: Directory, messages: list[bytes]) -> list[BaseException | None]:
    """Have a hub store them together; what it answers to each."""

    async def run() -> list[BaseException | None]:
        taking = Intake(store, pause_s=0.05, say=lambda _text: None)
        adds = (taking.add(decode(data, now_ns=NOW_NS)) for data in messages)
        return list(await asyncio.wait_for(asyncio.gather(*adds, return_exceptions=True), 60))

    return asyncio.run(run())


def test_numbers_of_one_host_do_not_end_the_answers_for_others(tmp_path: Path) -> None:
    store = Directory(str(tmp_path))
    assert take(store, [poison(number) for number in range(300)]) == [None] * 300
    selection = Selection(HOUR_S * 10**6, (HOUR_S + 3600) * 10**6)
    for _ in range(2):
        with duck.connect(store) as connection:
            question = Question(store, selection, connection)
            assert question.total() > 2**62
            assert question.functions(5).rows
            assert question.stacks()
        with duck.connect(store) as connection:
            question = Question(store, selection, connection, by_host=True)
            assert question.timeline(60 * 10**6)
            assert question.hosts()
            assert question.coverage().windows == 300
        compact(store, now_s=HOUR_S + 7200, say=lambda _made: None)


def test_a_window_that_cannot_be_stored_keeps_no_other_from_it(tmp_path: Path) -> None:
    tree = message()
    add_profile(tree, b"good")
    (good,) = decode(tree.SerializeToString(), now_ns=NOW_NS)
    tree = message()
    add_profile(tree, b"bad")
    (bad,) = decode(tree.SerializeToString(), now_ns=NOW_NS)
    bad = bad._replace(window=bad.window._replace(clock_offset_ns=10**20))

    async def run(deliveries: list[Delivery]) -> list[BaseException | None]:
        taking = Intake(Directory(str(tmp_path)), pause_s=0.05, say=said.append)
        adds = (taking.add([delivery]) for delivery in deliveries)
        answers = list(await asyncio.wait_for(asyncio.gather(*adds, return_exceptions=True), 30))
        assert taking.tally.deliveries == 1
        return answers

    said: list[str] = []
    first, second = asyncio.run(run([good, bad]))
    assert first is None
    assert isinstance(second, RefusedError)
    assert len(said) == 1


def test_what_a_hub_remembers_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "_MOST_REMEMBERED", 10)
    monkeypatch.setattr(intake, "_MOST_IDS", 10)
    taking = Intake(Directory(str(tmp_path)), pause_s=0, say=lambda _text: None)

    async def run() -> None:
        for number in range(20):
            tree = message()
            tree.dictionary.string_table[3] = f"work{number}"
            add_profile(tree, number.to_bytes(16, "big"))
            await taking.add(decode(tree.SerializeToString(), now_ns=NOW_NS))

    asyncio.run(run())
    assert taking.remembered <= 10 + 10 + 4


def test_windows_without_samples_count_as_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "_MOST_ROWS", 100)

    async def run() -> int:
        taking = Intake(Directory(str(tmp_path)), pause_s=0.5, say=lambda _text: None)
        tree = message()
        for number in range(150):
            del add_profile(tree, number.to_bytes(16, "big")).samples[:]
        deliveries = decode(tree.SerializeToString(), now_ns=NOW_NS)
        first = asyncio.create_task(taking.add(deliveries))
        await asyncio.sleep(0)
        with pytest.raises(intake.FullError):
            await taking.add(decode(poison(1), now_ns=NOW_NS))
        await first
        return taking.tally.deliveries

    assert asyncio.run(run()) == 150


def test_what_does_not_fit_into_memory_lies_in_a_directory_of_ours(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Not below a name that another user can guess, and have made before."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    planted = tmp_path / f"purebpf-fleet-{os.getpid()}"
    planted.mkdir()
    with duck.connect(Directory(str(tmp_path))) as connection:
        setting = "select value from duckdb_settings() where name = 'temp_directory'"
        scratch = Path(duck.rows(connection, setting)[0][0]).parent
        assert scratch != planted
        assert scratch.stat().st_mode & 0o077 == 0
    assert list(tmp_path.iterdir()) == [planted]
