"""OTLP messages: as opentelemetry-proto reads them, by its own rules, and back."""

from __future__ import annotations

import pytest
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2
from opentelemetry.proto.profiles.v1development import profiles_pb2

from purebpf.errors import FormatError
from purebpf.results.formats.otlp import Entry, Sample, Series, Window, document
from purebpf.results.formats.otlp_reader import read_document
from purebpf.symbols.file_ids import FileIds

MAIN = Entry("main", "shop", "user")
WORK = Entry("work<int>", "shop", "user")
STRIPPED = Entry("", "libz.so.1", "user", "ab" * 20, 0x1234)
SWITCH = Entry("schedule", "kernel", "kernel")
PYTHON = Entry("handle", "app.py", "python")

WINDOW = Window(
    "samples", "count", 1_700_000_000_000_000_000, 60_000_000_123, 52_631_579,
    (("purebpf.seen", 5), ("purebpf.start_id", "0123abcd"), ("purebpf.clock_step_ns", -7)),
    b"x" * 16,
)  # fmt: skip
SERIES = [
    Series(
        (("service.name", "shop"), ("service.version", "ab12")),
        {
            Sample("worker", (SWITCH, WORK, MAIN)): 3,
            Sample("worker", (STRIPPED, MAIN)): 2,
            Sample("", ()): 1,
        },
    ),
    Series((("service.name", "web"),), {Sample("py", (PYTHON, MAIN)): 1 << 40}),
]


@pytest.fixture
def request_message() -> profiles_service_pb2.ExportProfilesServiceRequest:
    message = profiles_service_pb2.ExportProfilesServiceRequest()
    assert message.ParseFromString(document(WINDOW, SERIES, "1.2"))
    return message


def test_the_package_reads_every_field(request_message) -> None:
    tables = request_message.dictionary
    shop, web = request_message.resource_profiles
    assert {pair.key: pair.value.string_value for pair in shop.resource.attributes} == {
        "service.name": "shop",
        "service.version": "ab12",
    }
    (scope,) = shop.scope_profiles
    assert (scope.scope.name, scope.scope.version) == ("purebpf", "1.2")
    (profile,) = scope.profiles
    text = tables.string_table
    assert text[profile.sample_type.type_strindex] == "samples"
    assert text[profile.sample_type.unit_strindex] == "count"
    assert text[profile.period_type.type_strindex] == "cpu"
    assert (profile.time_unix_nano, profile.duration_nano, profile.period) == WINDOW[2:5]
    assert profile.profile_id == b"x" * 16
    facts = [tables.attribute_table[at] for at in profile.attribute_indices]
    assert [text[fact.key_strindex] for fact in facts] == [name for name, _ in WINDOW.facts]
    assert facts[0].value.int_value == 5
    assert facts[2].value.int_value == -7
    assert [list(sample.values) for sample in profile.samples] == [[3], [2], [1]]
    locations = tables.stack_table[profile.samples[0].stack_index].location_indices
    names = [
        text[tables.function_table[tables.location_table[at].lines[0].function_index].name_strindex]
        for at in locations
    ]
    assert names == ["schedule", "work<int>", "main"], "leaf first"
    place = tables.location_table[
        tables.stack_table[profile.samples[1].stack_index].location_indices[0]
    ]
    assert (place.address, len(place.lines)) == (0x1234, 0)
    mapping = tables.mapping_table[place.mapping_index]
    (build_id,) = [tables.attribute_table[at] for at in mapping.attribute_indices]
    assert text[build_id.key_strindex] == "process.executable.build_id.gnu"
    assert build_id.value.string_value == "ab" * 20
    assert web.scope_profiles[0].profiles[0].samples[0].values == [1 << 40]
    types = {
        tables.attribute_table[at].value.string_value
        for location in tables.location_table
        for at in location.attribute_indices
    }
    assert types == {"native", "kernel", "cpython"}


def mapping_attributes(tables, index: int) -> dict[str, str]:
    """The attributes of a mapping, by name."""
    attributes = [
        tables.attribute_table[at] for at in tables.mapping_table[index].attribute_indices
    ]
    return {tables.string_table[a.key_strindex]: a.value.string_value for a in attributes}


def test_mappings_have_the_identifiers_of_their_files() -> None:
    prefix = "process.executable.build_id"
    shop = FileIds(go="a/b/c", htlhash="cd" * 16)
    files = {
        ("shop", ""): shop,
        ("libz.so.1", "ab" * 20): FileIds("ab" * 20, htlhash="ef" * 16),
    }
    data = document(WINDOW, SERIES, "1.2", files)
    message = profiles_service_pb2.ExportProfilesServiceRequest()
    message.ParseFromString(data)
    tables = message.dictionary
    by_name = {
        tables.string_table[mapping.filename_strindex]: mapping_attributes(tables, index)
        for index, mapping in enumerate(tables.mapping_table)
    }
    assert by_name == {
        "": {},
        "shop": {f"{prefix}.go": "a/b/c", f"{prefix}.htlhash": "cd" * 16},
        "libz.so.1": {f"{prefix}.gnu": "ab" * 20, f"{prefix}.htlhash": "ef" * 16},
        "kernel": {},
        "app.py": {},
    }
    assert [tuple(entry) for entry in read_document(data)] == [
        (WINDOW, series) for series in SERIES
    ], "functions are the same in all builds"


def test_the_tables_follow_the_rules(request_message) -> None:
    """Element 0 is empty, nothing is there twice, everything is used."""
    tables = request_message.dictionary
    for name in ("mapping", "location", "function", "link", "attribute", "stack"):
        table = getattr(tables, f"{name}_table")
        assert table[0].ByteSize() == 0
        contents = [entry.SerializeToString() for entry in table]
        assert len({*contents}) == len(contents), name
    assert tables.string_table[0] == ""
    assert len({*tables.string_table}) == len(tables.string_table)
    used = {index for stack in tables.stack_table for index in stack.location_indices}
    assert used == {*range(1, len(tables.location_table))}
    used = {line.function_index for place in tables.location_table for line in place.lines}
    assert used == {*range(1, len(tables.function_table))}


def test_no_field_is_unknown_to_the_package(request_message) -> None:
    """A number that the package does not have would come back as an unknown field."""
    data = document(WINDOW, SERIES)
    message = profiles_pb2.ProfilesData()
    message.ParseFromString(data)
    again = profiles_pb2.ProfilesData()
    again.ParseFromString(data)
    again.DiscardUnknownFields()
    assert message.SerializeToString() == again.SerializeToString()


def test_what_is_written_is_read_back() -> None:
    assert [tuple(entry) for entry in read_document(document(WINDOW, SERIES))] == [
        (WINDOW, series) for series in SERIES
    ]


def test_a_window_without_samples_is_read_back() -> None:
    empty = Series((("service.name", ""),), {})
    (entry,) = read_document(document(WINDOW, [empty]))
    assert entry.series == empty


def test_values_in_the_place_before_1_10_are_refused_with_words() -> None:
    message = profiles_pb2.ProfilesData()
    message.ParseFromString(document(WINDOW, SERIES))
    for sample in message.resource_profiles[0].scope_profiles[0].profiles[0].samples:
        sample.attribute_indices[:] = [1]
        del sample.values[:]
    with pytest.raises(FormatError, match=r"before opentelemetry-proto 1\.10"):
        read_document(message.SerializeToString())


@pytest.mark.parametrize("cut", [1, 7, 100, 333])
def test_a_part_of_a_message_is_refused(cut: int) -> None:
    whole = document(WINDOW, SERIES)
    with pytest.raises(FormatError, match="bytes"):
        read_document(whole[:-cut])


def test_indices_out_of_range_are_refused() -> None:
    message = profiles_pb2.ProfilesData()
    message.ParseFromString(document(WINDOW, SERIES))
    message.resource_profiles[0].scope_profiles[0].profiles[0].samples[0].stack_index = 99
    with pytest.raises(FormatError):
        read_document(message.SerializeToString())
