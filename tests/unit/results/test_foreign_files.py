"""Odd files of other tools: decimals, tabs, other units, packed and unknown formats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import purebpf
from purebpf.errors import FormatError
from purebpf.results import Profile
from purebpf.results.formats import folded, perf_script, pprof_reader, speedscope_reader
from purebpf.results.formats.protobuf import integer, message, varint


def lines(profile: Profile) -> list[str]:
    return list(folded.lines(profile))


def losses(profile: Profile) -> dict[str, int]:
    return {cause.name: cause.lost for cause in profile.loss.causes}


def speedscope(*profiles: tuple[str, list[list[int]], list[float]]) -> str:
    parts = [
        {"type": "sampled", "name": "p", "unit": unit, "samples": samples, "weights": weights}
        for unit, samples, weights in profiles
    ]
    frames = [{"name": "a"}, {"name": "b"}]
    schema = "https://www.speedscope.app/file-format-schema.json"
    return json.dumps({"$schema": schema, "shared": {"frames": frames}, "profiles": parts})


# Decimals


def test_decimals_of_a_stack_are_added_up_before_they_are_rounded() -> None:
    profile = folded.parse(["a;b 0.4"] * 10 + ["c;d 2.5", "e;f 0.3"])
    assert lines(profile) == ["c;d 3\n", "a;b 4\n"]
    assert losses(profile) == {"below_a_half": 1}


def test_weights_below_one_are_added_up_in_speedscope_too() -> None:
    text = speedscope(("milliseconds", [[0], [1]] * 1000, [0.0000004, 0.0000001] * 1000))
    assert lines(speedscope_reader.parse(text)) == ["p;b 100\n", "p;a 400\n"]
    small = speedscope_reader.parse(speedscope(("none", [[0], [1]], [0.4, 0.4])))
    assert (lines(small), losses(small)) == ([], {"below_a_half": 2})


def test_profiles_of_another_unit_are_counted_as_left_out() -> None:
    text = speedscope(("none", [[0]], [5]), ("milliseconds", [[1]], [7]), ("none", [[1]], [2]))
    profile = speedscope_reader.parse(text)
    assert (lines(profile), profile.unit) == (["p;b 2\n", "p;a 5\n"], "samples")
    assert losses(profile) == {"other_units": 1}


def test_a_truth_value_is_no_frame() -> None:
    with pytest.raises(FormatError, match="frame True of 2"):
        speedscope_reader.parse(speedscope(("none", [[True]], [5])))


# Forms of lines


def test_tabs_and_blanks_around_a_count() -> None:
    profile = folded.parse(["a;b\t5", "c;d   3  ", "e;operator new 2"])
    assert lines(profile) == ["e;operator new 2\n", "c;d 3\n", "a;b 5\n"]
    with pytest.raises(FormatError, match="two counts"):
        folded.parse(["a;b\t12\t20"])


def test_a_sample_without_frames_counts_as_py_spy_has_it() -> None:
    profile = folded.parse(["main (a.py:3);leaf (a.py:1) 155", " 1", "\t2"])
    assert profile.total == 158
    assert " 3\n" in lines(profile)
    for bad in ([" 5"], ["a 3", "5"], ["a 3", " x"]):
        with pytest.raises(FormatError):
            folded.parse(bad)


def test_a_profile_of_go_begins_with_its_time() -> None:
    kind = message(1, integer(1, 1) + integer(2, 2))
    sample = message(2, message(1, varint(1)) + message(2, varint(7)))
    place = message(4, integer(1, 1) + message(4, integer(1, 1)))
    function = message(5, integer(1, 1) + integer(2, 3))
    texts = b"".join(message(6, text) for text in (b"", b"samples", b"count", b"main.main"))
    data = integer(9, 1796048531011380187) + kind + sample + place + function + texts
    assert pprof_reader.looks_like(data)
    assert lines(pprof_reader.parse(data)) == [";main.main 7\n"]
    for other in (b"Hello", b"H", b"\x08\x01", b"R\x02ab\n\x02\x08\x01", b"a;b 5\n", integer(9, 7)):
        assert not pprof_reader.looks_like(other), other


def test_carriage_returns_alone_end_lines(tmp_path: Path) -> None:
    (tmp_path / "mac").write_bytes(b"a;b 5\rc;d 3\r")
    assert lines(purebpf.read_profile(tmp_path / "mac")) == ["c;d 3\n", "a;b 5\n"]


def test_an_event_without_a_thread_is_no_part_of_the_name() -> None:
    frames = "\t    55d0 f ([unknown])\n\n"
    text = f"app cycles: \n{frames}app faults: \n{frames}my app cycles: \n{frames}"
    profile = perf_script.parse(text.split("\n"))
    assert lines(profile) == ["app;f 1\n", "my app;f 1\n"]
    assert profile.about["event"] == "cycles"
    assert profile.about["other_events"] == ["faults: 1 sample"]
    assert lines(perf_script.parse(f"cycles: \n{frames}".split("\n"))) == [";f 1\n"]


def test_the_name_of_an_inlined_function_has_no_offset() -> None:
    text = "app 7 1.5: cycles: \n\t 55d0 inner+0x10 (inlined)\n\t 55d0 outer+0x10 (/srv/app)\n\n"
    assert lines(perf_script.parse(text.split("\n"))) == ["app;outer;inner 1\n"]


# Files that purebpf does not read


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"# callgrind format\nversion: 1\nevents: Ir\nfn=main\n16 20\n", "callgrind"),
        (b"version: 1\ncreator: xdebug\ncmd: a\nevents: Time\n\nfl=x\n", "callgrind"),
        (b'{"nodes": [], "startTime": 0, "samples": [], "timeDeltas": [0]}', "CPU profile of Chr"),
        (b'{"nodes": [' + b"{}," * 30_000 + b'{}], "timeDeltas": [0]}', "CPU profile of Chrome"),
        (b'{"head": {"callFrame": {}, "selfSize": 0}}', "heap profile of Chrome"),
        (b'{"traceEvents": []}', "Chrome's trace events"),
        (b'[{"ph": "X", "name": "a", "ts": 1, "dur": 2}]', "Chrome's trace events"),
        (b'{"meta": {"version": 24}, "threads": []}', "Firefox"),
        (b"Attaching 1 probe...\n\n@[\n    f\n    main\n]: 5\n", "stackcollapse-bpftrace.pl"),
        (b"Flat profile:\n\nEach sample counts as 0.01 seconds.\n", "gprof"),
        (b"File: x\nType: cpu\nShowing nodes accounting for 10ms\n", "go tool pprof -proto"),
        (b"sample:\n  event_type: cpu-clock\n", "simpleperf"),
        (b"\n              f\n              main\n                5\n", "stackcollapse.pl"),
        (b"<?xml version='1.0'?><trace-query-result/>", "inferno-collapse-xctrace"),
        (b'{"start_time": 1.5, "sample_count": 3, "root_frame": {}}', "pyinstrument"),
        (b"# austin: 3.7.0\n# mode: full\n\nP1;T0:1;a:b:1 850,0,0\n", "Austin with all"),
        (b"MOJ\x03\x01austin\x003.7.0\0", "mojo2austin"),
        (b"\xfb)\x03\xfa\x06app.py\xe9\x01\0\0\0", "cProfile"),
        (b"FLR\0\0\2\0\0", "Flight Recorder"),
        (b"Nettrace\x14\0\0\0!FastSerialization.1", "dotnet-trace"),
        (b"gmon\1\0\0\0", "gprof"),
        (b"memray\0\0\x0b", "memray"),
        (b"SIMPLEPERF\1\0", "simpleperf"),
        (b"2ELIFREP\0\0\0\0\0\0\0h", "big-endian"),
        (b'{"snapshot":{"meta":{"node_fields":["type"]}}}', "heap snapshot"),
        (b"a;b\0 5\n", "byte 3: not text"),
        (b"goroutine 1 [running]:\nmain.main()\n", "debug=0"),
        (b"v8-version,11,3,244,8,-node.38,0\n", "node --cpu-prof"),
        (b"\x28\xb5\x2f\xfd\x20\x06", "zstd -d"),
        (b"\xfd7zXZ\0\0\4", "xz -d"),
        (b"BZh91AY&SY", "bzip2 -d"),
        (b"PK\3\4\x14\0", "unzip"),
    ],
)
def test_a_file_that_is_not_read_is_named(data: bytes, name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(FormatError, match=name):
        purebpf.read_profile(tmp_path / "file")


def test_stacks_that_look_like_other_formats_are_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text('{x};"traceEvents" 5\n'.replace("{", "(") + "File: a;b 3\n")
    assert purebpf.read_profile(tmp_path / "file").total == 8
