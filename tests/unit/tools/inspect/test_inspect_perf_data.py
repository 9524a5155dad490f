"""What `purebpf inspect` says of perf.data files: whole, unfinished, truncated, damaged."""

from __future__ import annotations

import io
import json
import re
import struct

import pytest

from purebpf.abi.perf import PERF_EVENT_ATTR
from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.errors import FormatError, NotSupportedError
from purebpf.tools.inspect.perf_data import PerfDataReport, describe_perf_data
from purebpf.tools.inspect.render import document
from purebpf.tools.inspect.render_files import perf_data_lines
from purebpf.wire.perf_data import HEADER, MAGIC, SECTION, Feature, RecordedEvent
from purebpf.wire.perf_data_features import (
    BuildId,
    pack_build_ids,
    pack_cpus,
    pack_numbers,
    pack_pmus,
    pack_string,
    pack_strings,
)
from purebpf.wire.perf_data_writer import PerfDataWriter

SAMPLED = bit.PERF_SAMPLE_IDENTIFIER | bit.PERF_SAMPLE_TIME
ATTR = PERF_EVENT_ATTR.pack(
    type=1, size=136, sample_freq=99, freq=1, precise_ip=2, sample_type=SAMPLED, wakeup_events=1
)
RECORD = bytes.fromhex("4100000000001000") + bytes(8)
FEATURES = {
    Feature.HOSTNAME: pack_string("host"),
    Feature.CMDLINE: pack_strings(["record", "-g"]),
    Feature.NRCPUS: pack_cpus(4, 2),
    Feature.TOTAL_MEM: pack_numbers(1 << 20),
    Feature.PMU_MAPPINGS: pack_pmus([(1, "software"), (8, "uprobe")]),
    Feature.BUILD_ID: pack_build_ids([BuildId("/bin/true", bytes(range(20)))]),
    Feature.MEM_TOPOLOGY: bytes(24),
}


def written(*, finish: bool = True, features: dict[Feature, bytes] = FEATURES) -> bytes:
    file = io.BytesIO()
    writer = PerfDataWriter(file, [RecordedEvent("cpu-clock", bytes(ATTR), (11, 12))])
    writer.write(RECORD)
    if finish:
        writer.finish(features)
    return file.getvalue()


def described(data: bytes) -> PerfDataReport:
    return describe_perf_data(lambda at, size: data[at : at + size], len(data), "x.data")


def test_every_part_of_a_file_is_shown() -> None:
    report = described(written())
    assert report.notes == ()
    assert [each.name for each in report.sections] == ["header", "attrs", "data"]
    assert report.sections[0][1:] == (0, 104)
    assert report.sections[2].size == len(RECORD)
    (event,) = report.events
    assert (event.name, event.ids) == ("cpu-clock", (11, 12))
    assert event.fields == {
        "type": "PERF_TYPE_SOFTWARE",
        "size": 112,
        "config": "PERF_COUNT_SW_CPU_CLOCK",
        "sample_freq": 99,
        "sample_type": ["TIME", "IDENTIFIER"],
        "wakeup_events": 1,
        "flags": ["freq", "precise_ip=2"],
    }
    assert {each.name: each.value for each in report.features} == {
        "HOSTNAME": "host",
        "CMDLINE": ["record", "-g"],
        "NRCPUS": {"available": 4, "online": 2},
        "TOTAL_MEM": {"kib": 1 << 20},
        "PMU_MAPPINGS": [{"type": 1, "name": "software"}, {"type": 8, "name": "uprobe"}],
        "BUILD_ID": [{"file": "/bin/true", "build_id": bytes(range(20)).hex()}],
        "EVENT_DESC": [{"name": "cpu-clock", "ids": [11, 12]}],
        "MEM_TOPOLOGY": None,
    }


def test_addresses_of_events_are_hexadecimal() -> None:
    data = bytearray(written())
    (attr,) = struct.unpack_from("<Q", data, 24)
    struct.pack_into("<Q", data, attr + 56, 0xFFFF_FFFF_8123_4567)  # config1, of a kprobe
    (event,) = json.loads(document(described(bytes(data))))["events"]
    assert event["fields"]["config1"] == "0xffffffff81234567"


def test_text_and_json_have_the_same_values() -> None:
    report = described(written())
    text = "".join(perf_data_lines(report))
    assert "EVENT cpu-clock\n" in text
    assert "  sample_type    TIME|IDENTIFIER\n" in text
    assert re.search(r"  CMDLINE +140 bytes +record -g\n", text)
    assert json.loads(document(report))["events"][0]["fields"]["sample_freq"] == 99


def test_a_recording_that_did_not_finish_still_has_its_header() -> None:
    report = described(written(finish=False))
    assert report.notes == ("no data: the recording did not finish",)
    assert report.events[0].ids == (11, 12)


def test_a_truncated_file_says_where_it_ends() -> None:
    data = written()
    (_, _, _, _, _, at, *_) = HEADER.unpack(data[: HEADER.size])
    report = described(data[: at + 8])
    assert report.features == ()
    assert any(f"the file at {at + 8}" in note for note in report.notes)
    assert any("features" in note for note in report.notes)
    assert report.events[0].fields["sample_freq"] == 99


def test_a_damaged_feature_does_not_hide_the_others() -> None:
    broken = {
        **FEATURES,
        Feature.CPU_TOPOLOGY: b"\xff\xff\xff\xff",
        Feature.CMDLINE: b"\x01\0",
    }
    report = described(written(features=broken))
    problems = {each.name: each.problem for each in report.features if each.problem}
    assert problems.keys() == {"CPU_TOPOLOGY", "CMDLINE"}
    text = "".join(perf_data_lines(report))
    assert re.search(r"  CMDLINE +2 bytes +damaged: ", text)
    assert "stream read less than specified amount" in problems["CPU_TOPOLOGY"]
    assert {each.name: each.value for each in report.features}["HOSTNAME"] == "host"


def test_what_is_not_a_whole_header_is_refused() -> None:
    with pytest.raises(FormatError, match=r"not a perf\.data file"):
        described(b"\x7fELF" + bytes(200))
    with pytest.raises(FormatError, match="104 bytes at 0, but the file has 50"):
        described(written()[:50])
    with pytest.raises(NotSupportedError, match="perf inject"):
        described(MAGIC + (16).to_bytes(8, "little"))
    data = bytearray(written())
    data[16:24] = (SECTION.size + 8).to_bytes(8, "little")
    with pytest.raises(FormatError, match="attributes"):
        described(bytes(data))
