"""What a hub takes, and what it refuses with words."""

from __future__ import annotations

import random

import pytest
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import (
    ExportProfilesServiceRequest,
)

from purebpf.results.formats.otlp import Entry, Sample, Series, Window, document
from purebpf.services.fleet.decode import RefusedError, decode
from purebpf.services.fleet.ids import frame_id, stack_id
from tests.support.host.deliveries import HOUR_S, PERIOD_NS, window_message

NOW_NS = (HOUR_S + 120) * 10**9
STACK = (Entry("leaf", "/usr/lib/libc.so.6", "user"), Entry("main", "shop", "user"))
MESSAGE = window_message("h1", 0, {"shop": {Sample("a", STACK): 7, Sample("b", STACK): 2}})


def changed(change) -> bytes:  # type: ignore[no-untyped-def]
    """The message after a change of its tree."""
    tree = ExportProfilesServiceRequest()
    tree.ParseFromString(MESSAGE)
    change(tree)
    return bytes(tree.SerializeToString())


def profile(tree):  # type: ignore[no-untyped-def]
    return tree.resource_profiles[0].scope_profiles[0].profiles[0]


def test_a_window_of_an_agent():
    (delivery,) = decode(MESSAGE, now_ns=NOW_NS)
    window = delivery.window
    assert (window.ts_us, window.host, window.kind) == (HOUR_S * 10**6, "h1", "cpu")
    assert (window.expected, window.seen, window.lost) == (1140, 1139, (("map_full", 1),))
    assert sorted(sample.value for sample in delivery.samples) == [2 * PERIOD_NS, 7 * PERIOD_NS]
    assert {series.comm for series in delivery.series.values()} == {"a", "b"}
    frames = (frame_id("leaf", "libc.so.6", "", -1), frame_id("main", "shop", "", -1))
    assert delivery.stacks == {stack_id(frames): frames}
    assert {frame.function for frame in delivery.frames.values()} == {"leaf", "main"}


def test_ids_are_those_of_other_versions():
    # stores of before are read, so these numbers never change
    assert frame_id("main", "/usr/bin/shop", "", -1) == frame_id("main", "shop", "", -1)
    assert frame_id("main", "shop", "", -1) == 6860538406036665327
    assert stack_id((1, -2)) == 2811536125434670634


def test_frames_without_a_name_keep_their_place():
    stack = (Entry("", "libx.so", "user", "ab12", 4096),)
    data = window_message("h1", 0, {"shop": {Sample("a", stack): 1}})
    (delivery,) = decode(data, now_ns=NOW_NS)
    (frame,) = delivery.frames.values()
    assert (frame.function, frame.module, frame.build_id, frame.file_offset) == (
        "", "libx.so", "ab12", 4096,
    )  # fmt: skip


def test_services_of_a_window_are_one_delivery():
    services = {name: {Sample("a", STACK): 1} for name in ("shop", "web")}
    (delivery,) = decode(window_message("h1", 0, services), now_ns=NOW_NS)
    assert len(delivery.samples) == 2
    assert {series.service for series in delivery.series.values()} == {"shop", "web"}


@pytest.mark.parametrize(
    ("kind", "stored"), [("off_cpu", "offcpu"), ("run_queue", "runqueue"), ("cpu", "cpu")]
)
def test_nanoseconds_are_taken_as_they_are(kind: str, stored: str):
    data = window_message("h1", 0, {"s": {Sample("a", STACK): 5}}, kind=(kind, "nanoseconds"))
    (delivery,) = decode(data, now_ns=NOW_NS)
    assert delivery.window.kind == stored
    assert [sample.value for sample in delivery.samples] == [5]


def test_a_token_of_one_host_writes_as_no_other():
    assert decode(MESSAGE, host="h1", now_ns=NOW_NS)
    with pytest.raises(RefusedError, match="this token is that of h2, not of 'h1'"):
        decode(MESSAGE, host="h2", now_ns=NOW_NS)


def test_a_window_of_the_future_is_refused():
    with pytest.raises(RefusedError, match="begins in 1200 s: is the clock right"):
        decode(MESSAGE, now_ns=(HOUR_S - 1200) * 10**9)


def test_the_clock_offset_is_kept():
    (delivery,) = decode(MESSAGE, sent_ns=NOW_NS - 3_000_000_000, now_ns=NOW_NS)
    assert delivery.window.clock_offset_ns == 3_000_000_000


def old_layout(tree) -> None:  # type: ignore[no-untyped-def]
    for sample in profile(tree).samples:
        del sample.values[:]  # what 1.10 finds of a message that has them in field 2


def far_stack(tree) -> None:  # type: ignore[no-untyped-def]
    profile(tree).samples[0].stack_index = 10**6


def negative_index(tree) -> None:  # type: ignore[no-untyped-def]
    tree.dictionary.stack_table[1].location_indices[0] = -1


def million_labels(tree) -> None:  # type: ignore[no-untyped-def]
    for number in range(65):
        pair = tree.resource_profiles[0].resource.attributes.add()
        pair.key = f"label{number}"
        pair.value.string_value = "x"


def unknown_type(tree) -> None:  # type: ignore[no-untyped-def]
    profile(tree).sample_type.type_strindex = 0


def huge_value(tree) -> None:  # type: ignore[no-untyped-def]
    profile(tree).samples[0].values[0] = 1 << 62


def no_time(tree) -> None:  # type: ignore[no-untyped-def]
    profile(tree).time_unix_nano = 0


def deep_stack(tree) -> None:  # type: ignore[no-untyped-def]
    tree.dictionary.stack_table[1].location_indices.extend([1] * 5000)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (old_layout, "sent before opentelemetry-proto 1.10"),
        (far_stack, "an index is beyond its table"),
        (negative_index, "an index is beyond its table"),
        (million_labels, "labels: 64 at most"),
        (unknown_type, "known are samples/count"),
        (huge_value, "a value of"),
        (no_time, "a window without a time"),
        (deep_stack, "a stack of more than 4096 frames"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_refused(change, why: str):  # type: ignore[no-untyped-def]
    with pytest.raises(RefusedError, match=why):
        decode(changed(change), now_ns=NOW_NS)


def test_names_are_printable():
    stack = (Entry("evil\x1b[2J\n", "m", "user"),)
    window = Window("samples", "count", HOUR_S * 10**9, 60 * 10**9, 1)
    series = Series((("service.name", "a\x1bb"), ("host.name", "h\n1")), {Sample("c", stack): 1})
    (delivery,) = decode(document(window, [series]), now_ns=NOW_NS)
    texts = [delivery.window.host, *(f.function for f in delivery.frames.values())]
    assert all(text.isprintable() for text in texts), texts


def test_whatever_the_bytes_are():
    chance = random.Random(3)
    taken = refused = 0
    for _ in range(1500):
        data = bytearray(MESSAGE)
        for _ in range(chance.randint(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            decode(bytes(data[: chance.randint(1, len(data))]), now_ns=NOW_NS)
            taken += 1
        except RefusedError:
            refused += 1
    assert taken
    assert refused > 500
