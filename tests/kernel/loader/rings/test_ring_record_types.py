"""What the records of a ring are, from a C source to typed values."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import pytest

import purebpf
from purebpf.errors import SchemaError
from tests.kernel.producers import U64

pytestmark = pytest.mark.needs("bpf", "perf_event", "clang")

SOURCE = """
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct event { __u64 number; __u32 flags; char name[8]; };
struct wider { struct event event; __u64 added; };
struct tailed { __u32 count; __u32 words[]; };
union either { __u64 number; char bytes[8]; };

#define RING __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 4096)
struct { RING; __type(value, struct event); } declared SEC(".maps");
struct { RING; } anchored SEC(".maps");
struct { RING; } untold SEC(".maps");
struct { RING; } words SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__type(key, int);
	__type(value, int);
} sent SEC(".maps");

const struct event *anchored_record;
struct tailed words_record;
struct event sent_record;
union either *either_anchor;
struct wider *wider_anchor;
__u64 number;

SEC("tc")
int produce(void *ctx)
{
	struct event event = {.number = number, .flags = 7};
	__u32 tail[4] = {3, 10, 11, 12};

	__builtin_memcpy(event.name, "hello", 6);
	bpf_ringbuf_output(&declared, &event, sizeof(event), 0);
	bpf_ringbuf_output(&anchored, &event, sizeof(event), 0);
	bpf_ringbuf_output(&untold, &event, sizeof(event), 0);
	bpf_ringbuf_output(&words, tail, sizeof(tail), 0);
	bpf_perf_event_output(ctx, &sent, BPF_F_CURRENT_CPU, &event, sizeof(event));
	number++;
	return 0;
}

char _license[] SEC("license") = "GPL";
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("records")
    source, target = place / "records.bpf.c", place / "records.bpf.o"
    source.write_text(SOURCE)
    command = ["clang-19", "-g", "-O2", "-target", "bpfel", "-mcpu=v3"]
    command += [f"-I/usr/include/{os.uname().machine}-linux-gnu"]
    command += ["-c", str(source), "-o", str(target)]
    subprocess.run(command, check=True)
    return target


@pytest.fixture
def loaded(program: Path) -> Iterator[purebpf.Object]:
    with purebpf.load(program) as loaded:
        yield loaded


def produce(loaded: purebpf.Object, times: int) -> None:
    loaded.programs["produce"].test_run(data=bytes(64), repeat=times)


@pytest.mark.parametrize("name", ["declared", "anchored", "sent"])
def test_an_object_says_what_its_records_are(loaded: purebpf.Object, name: str) -> None:
    with loaded.maps[name].reader() as records:
        produce(loaded, 13)
        found = list(records.drain())
    assert [(event.number, event.flags, event.name) for event in found] == [
        (number, 7, "hello") for number in range(13)
    ]
    assert type(found[0]).__name__ == "event"


def test_map_read_goes_on_where_it_stopped(loaded: purebpf.Object) -> None:
    produce(loaded, 5)
    events = loaded.maps["declared"]
    assert next(events.read()).number == 0
    assert [event.number for event in events.read(timeout=0)] == [1, 2, 3, 4]


def test_another_type_is_for_the_records_still_to_be_seen(loaded: purebpf.Object) -> None:
    produce(loaded, 5)
    events = loaded.maps["declared"]
    assert next(events.read()).number == 0
    rest = events.read(timeout=0, type="union either")
    assert [either.number for either in rest] == [1, 2, 3, 4]


@pytest.mark.parametrize("text", ["event", "struct event"])
def test_a_type_may_be_named_where_it_is_read(loaded: purebpf.Object, text: str) -> None:
    produce(loaded, 2)
    assert [event.number for event in loaded.maps["untold"].read(timeout=0, type=text)] == [0, 1]


def test_a_record_that_is_longer_than_its_type_is_cut(loaded: purebpf.Object) -> None:
    produce(loaded, 2)
    found = list(loaded.maps["untold"].read(timeout=0, type="union either"))
    assert [either.number for either in found] == [0, 1]


def test_a_flexible_array_ends_with_its_record(loaded: purebpf.Object) -> None:
    produce(loaded, 2)
    found = list(loaded.maps["words"].read(timeout=0))
    assert [(each.count, each.words) for each in found] == [(3, (10, 11, 12))] * 2


def test_bytes_are_always_to_be_had(loaded: purebpf.Object) -> None:
    produce(loaded, 1)
    (record,) = loaded.maps["untold"].read(timeout=0, type=bytes)
    assert record[:20] == U64.pack(0) + b"\7\0\0\0hello\0\0\0"
    assert len(record) == 24


def test_an_object_that_does_not_say_is_not_guessed_at(loaded: purebpf.Object) -> None:
    with pytest.raises(
        SchemaError, match=r"'untold': unknown record.* `struct NAME \*untold_record"
    ):
        next(loaded.maps["untold"].read())
    with pytest.raises(
        SchemaError, match=r"not have type 'struct absent'; .* `struct absent \*unused;`"
    ):
        next(loaded.maps["untold"].read(type="struct absent"))


def test_char_arrays_are_bytes_where_that_was_asked_for(loaded: purebpf.Object) -> None:
    class Event(NamedTuple):
        number: Annotated[int, "u64"]
        flags: Annotated[int, "u32"]
        name: Annotated[bytes, 8]

    ring = loaded.maps["declared"]
    for _ in range(3):
        loaded.programs["produce"].test_run(data=bytes(64))
    assert next(ring.read(timeout=0)).name == "hello"
    assert next(ring.bind(text=False).read(timeout=0)).name == b"hello\0\0\0"
    assert [*ring.read(timeout=0, type=Event)] == [(2, 7, b"hello\0\0\0")]


def test_a_record_of_an_older_program_is_read_by_a_wider_type(loaded: purebpf.Object) -> None:
    ring = loaded.maps["declared"]
    for _ in range(7):
        loaded.programs["produce"].test_run(data=bytes(64))
    first = next(ring.read(timeout=0, type="struct wider", short="zero"))
    assert (first.event.flags, first.event.name, first.added) == (7, "hello", 0)
    assert [record.event.number for record in ring.read(timeout=0)] == [1, 2, 3, 4, 5, 6]
    loaded.programs["produce"].test_run(data=bytes(64))
    with pytest.raises(purebpf.FormatError, match="24 bytes: its type has 32"):
        next(ring.read(timeout=0, short="error"))


def test_short_records_are_rows_with_zeros(loaded: purebpf.Object) -> None:
    pytest.importorskip("numpy")
    with purebpf.RingBuffer(loaded.maps["declared"], "struct wider", short="zero") as ring:
        for _ in range(7):
            loaded.programs["produce"].test_run(data=bytes(64))
        assert next(ring.drain()).added == 0  # those that it took with it come first
        loaded.programs["produce"].test_run(data=bytes(64))
        rows = ring.drain_numpy()
        assert rows["event"]["number"].tolist() == [1, 2, 3, 4, 5, 6, 7]
        assert rows["event"]["flags"].tolist() == [7] * 7
        assert rows["added"].tolist() == [0] * 7
