"""Each format holds what the profile holds: no weight, name or label is lost on the way."""

from __future__ import annotations

import csv
import gzip
import io
import json as reader
import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings

from purebpf.errors import FormatError
from purebpf.formats import FORMATS, of_path
from purebpf.results import Labels, Profile
from purebpf.results.formats import firefox, folded, json, pprof, speedscope, writer
from purebpf.results.model.spelling import printable
from purebpf.results.shape import table
from purebpf.results.shape.functions import Functions
from tests.support.builders import profiles
from tests.support.oracles import protobuf

SOME = settings(max_examples=40)


def rows(profile: Profile) -> Counter[tuple[object, ...]]:
    """What a profile says, whatever the order."""
    return Counter(tuple(row) for row in profile.rows())


def paths(profile: Profile) -> Counter[tuple[str, ...]]:
    """Weight by the names from root to leaf."""
    functions = Functions()
    found: Counter[tuple[str, ...]] = Counter()
    for row in profile.rows():
        numbers = functions.path(row)
        found[tuple(functions.table[number].name for number in numbers)] += row.weight
    return +found


def clean(names: Counter[tuple[str, ...]]) -> Counter[tuple[str, ...]]:
    """Without what a terminal would obey, or UTF-8 cannot say."""
    found: Counter[tuple[str, ...]] = Counter()
    for path, weight in names.items():
        cleaned = ("".join(char if char.isprintable() else "?" for char in name) for name in path)
        found[tuple(cleaned)] += weight
    return found


@pytest.mark.parametrize("kind", ["user", "kernel", "inlined", "python", "cut"])
def test_frames_of_each_kind_are_read_back(kind: str) -> None:
    profile = Profile()
    profile.add((profiles.WORK._replace(kind=kind), profiles.MAIN), (), 7, Labels("app", 185))
    assert json.parse(json.document(profile)).rows() == profile.rows()


@SOME
@given(profiles.profiles())
def test_json_comes_back_as_it_went(profile: Profile) -> None:
    found = json.parse(json.document(profile))
    assert rows(found) == rows(profile)
    assert (found.title, found.unit, found.about) == (profile.title, profile.unit, profile.about)


@pytest.mark.parametrize("profile", [profiles.example(), profiles.timed()])
def test_json_comes_back_whole(profile: Profile) -> None:
    found = json.parse(json.document(profile))
    assert rows(found) == rows(profile)
    assert found.loss.any == profile.loss.any
    assert (found.loss.expected, found.loss.seen) == (profile.loss.expected, profile.loss.seen)
    assert found.loss.causes[:1] == profile.loss.causes[:1]
    assert (found.cost, found.slot_ns) == (profile.cost, profile.slot_ns)
    assert json.document(found) == json.document(profile)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        (json.document(profiles.example())[:-40], "not JSON"),
        ("[]", "schema: got None, expected"),
        ('{"schema": "purebpf.report/9"}', "got 'purebpf.report/9', expected 'purebpf.report/1'"),
        ('{"schema": "purebpf.report/1"}', "'title' is missing"),
        (
            json.document(profiles.example()).replace('"user":[0', '"user":[-1'),
            "not lists of numbers of frames",
        ),
        (
            json.document(profiles.example()).replace('"user":[0', '"user":[{}'),
            "not lists of numbers of frames",
        ),
        (
            json.document(profiles.example()).replace('"user":[0', '"user":[99'),
            "profile: frame 99 of",
        ),
        (
            json.document(profiles.example()).replace('"weight":40', '"weight":{}'),
            "another type than the format's",
        ),
        ("[" * 100_000, "nested too deeply"),
        ('{"weight": ' + "9" * 5000 + "}", "digits"),
    ],
)
def test_broken_json_is_reported(text: str, problem: str) -> None:
    with pytest.raises(FormatError, match=problem):
        json.parse(text, "day.json")


def damaged(place: str, value: str) -> str:
    """A saved profile in which what is at a place, `stacks/0/weight`, is some other JSON."""
    tree = reader.loads(json.document(profiles.timed())) | {"slot_ns": 20_000_000}
    (tree["stacks"][0]["kind"], tree["stacks"][0]["time_ns"]) = ("off-CPU", 7)
    inner: Any = tree
    *way, last = [int(each) if each.isdigit() else each for each in place.split("/")]
    for each in way:
        inner = inner[each]
    inner[last] = "@"
    return reader.dumps(tree).replace('"@"', value)


NO_NUMBERS = ["1e999", "NaN", "1e308", "99999999999999999999999", "-2", "[]"]


@pytest.mark.parametrize("value", NO_NUMBERS)
@pytest.mark.parametrize(
    "place",
    [
        "frames/0/offset",
        "frames/0/file_offset",
        "frames/0/line",
        "stacks/0/weight",
        "stacks/0/pid",
        "stacks/0/tid",
        "stacks/0/cpu",
        "stacks/0/time_ns",
        "stacks/0/times",
        "stacks/0/runnable",
        "stacks/0/slots/0/0",
        "stacks/0/slots/0/1",
        "slot_ns",
        "tolerance",
        "loss/expected",
        "loss/seen",
        "loss/map_full",
        "cost/run_cnt",
    ],
)
def test_json_weights_that_are_not_numbers_are_reported(place: str, value: str) -> None:
    wanted = (
        r"^day.json: (profile: (\S+ is below -?\d or too high|a value has another type than the "
        r"format's)|JSON: \w+ is not a finite number)"
    )
    with pytest.raises(FormatError, match=wanted):
        json.parse(damaged(place, value), "day.json")


NO_LIST = "a stack must be a list or null, not "


@pytest.mark.parametrize(
    ("place", "value", "problem"),
    [
        ("stacks/0/kernel", "1e308", NO_LIST + "1e+308"),
        ("stacks/0/user", '"main"', NO_LIST + "'main'"),
        ("stacks/0/user", "{}", NO_LIST + "{}"),
        ("stacks/0/user", "0", NO_LIST + "0"),
        ("stacks/0/slots", "[[4294967296, 1]]", "slot 4294967296"),
        ("stacks/0/slots", "7", "a value has another type than the format's"),
        ("stacks/0/kind", "[[1,2]]", "[[1, 2]] is not one of"),
        ("frames/0/kind", "[[1,2]]", "[[1, 2]] is not one of user"),
        ("frames/0/kind", '"process"', "'process' is not one of user"),
        ("frames/0/address", '"-0x1"', "-1 is below 0 or too high"),
        (
            "frames/0/address",
            '"0x10000000000000000"',
            "18446744073709551616 is below 0 or too high",
        ),
        ("about", "7", "about is an object, not 7"),
    ],
)
def test_json_that_is_not_a_profile_is_reported(place: str, value: str, problem: str) -> None:
    with pytest.raises(FormatError, match="^" + re.escape(f"day.json: profile: {problem}")):
        json.parse(damaged(place, value), "day.json")


def test_what_json_is_damaged_with_is_all_that_is_wrong() -> None:
    assert json.parse(damaged("stacks/0/slots", "[[4294967295, 4]]")).total == 10


def test_folded_comes_back_with_its_weights() -> None:
    profile = profiles.example()
    text = list(folded.lines(profile, annotations=True))
    again = list(folded.lines(folded.parse(text), annotations=True))
    assert again == text
    assert folded.parse(text).total == profile.total


def test_folded_lines_of_other_tools() -> None:
    found = folded.parse(["# made by an editor\n", "java;Main.run;sleep 7\n", "\n", "a b;c 1"])
    (first, second) = found.rows()
    assert (first.labels.comm, first.weight, second.weight) == ("a b", 1, 7)
    assert [entry.kind for entry in second.user or ()] == ["user", "user"]


@pytest.mark.parametrize("line", ["a;b", "a;b x", "a;b -1", "12", "a;b ²"])
def test_a_folded_line_without_a_count_is_reported(line: str) -> None:
    with pytest.raises(FormatError, match=r"line 2: .* does not end with a count"):
        folded.parse(["a;b 1", line])


def test_the_table_counts_a_recursive_function_once() -> None:
    found = {line.function.name: line[1:] for line in table.lines(profiles.example())}
    assert found["work"] == (40, 70)
    assert found["main"] == (0, 84)
    assert found["vfs_read"] == (35, 35)
    assert found["[Missed Kernel Stack]"] == (4, 4)
    assert found["[unknown]"] == (9, 9)


def test_csv_is_one_that_others_read() -> None:
    text = "".join(table.csv(profiles.hostile()))
    header, *lines = list(csv.reader(io.StringIO(text, newline="")))
    assert header[0] == "function"
    names = {line[0] for line in lines}
    assert {len(line) for line in lines} == {7}
    assert "'=1+1" in names
    assert {printable(name) for name in profiles.HOSTILE} - {"=1+1"} <= names
    assert all(cell.isprintable() for line in lines for cell in line)
    assert sum(int(line[3]) for line in lines) == profiles.hostile().total


class Pprof:
    """A profile.proto, decoded field by field."""

    def __init__(self, data: bytes) -> None:
        self.fields = protobuf.fields(gzip.decompress(data))
        self.strings = [text.decode() for text in self.fields[6]]
        self.mappings = {m[1][0]: m for m in self._all(3)}
        self.locations = {location[1][0]: location for location in self._all(4)}
        self.functions = {function[1][0]: function for function in self._all(5)}

    def _all(self, number: int) -> list[dict[int, list[Any]]]:
        return [protobuf.fields(each) for each in self.fields.get(number, [])]

    def name(self, location: int) -> str:
        (line,) = self.locations[location][4]
        return self.strings[self.functions[protobuf.fields(line)[1][0]].get(2, [0])[0]]

    def _value_type(self, data: bytes) -> tuple[str, str]:
        decoded = protobuf.fields(data)
        return self.strings[decoded[1][0]], self.strings[decoded[2][0]]

    def value_types(self) -> list[tuple[str, str]]:
        return [self._value_type(data) for data in self.fields[1]]

    def period(self) -> tuple[str, str, int]:
        return *self._value_type(self.fields[11][0]), self.fields[12][0]

    def values(self) -> list[list[int]]:
        return [list(protobuf.varints(sample[2][0])) for sample in self._all(2)]

    def samples(self) -> list[tuple[tuple[str, ...], int, dict[str, object]]]:
        found = []
        for sample in self._all(2):
            path = [self.name(location) for location in protobuf.varints(sample[1][0])]
            weight, *_ = protobuf.varints(sample[2][0])
            labels = {}
            for each in map(protobuf.fields, sample.get(3, [])):
                value = self.strings[each[2][0]] if 2 in each else each[3][0]
                labels[self.strings[each[1][0]]] = value
            found.append((tuple(reversed(path)), weight, labels))
        return found


@SOME
@given(profiles.profiles())
def test_pprof_holds_every_stack(profile: Profile) -> None:
    found: Counter[tuple[str, ...]] = Counter()
    for path, weight, _ in Pprof(pprof.document(profile)).samples():
        found[path] += weight
    assert +found == clean(paths(profile))


def test_pprof_says_how_much_time_a_sample_is() -> None:
    profile = Profile(about={"frequency_hz": 50, "event": "cpu-clock"})
    profile.add((), (), 3, Labels("x", 1))
    decoded = Pprof(pprof.document(profile))
    assert decoded.value_types() == [("samples", "count"), ("cpu", "nanoseconds")]
    assert decoded.period() == ("cpu", "nanoseconds", 20_000_000)
    assert decoded.values() == [[3, 60_000_000]]


def test_pprof_of_times_has_no_period() -> None:
    profile = Profile(unit="ns", about={"frequency_hz": 50})
    assert Pprof(pprof.document(profile)).value_types() == [("time", "nanoseconds")]


def test_pprof_keeps_labels_build_ids_and_file_offsets() -> None:
    decoded = Pprof(pprof.document(profiles.example()))
    assert decoded.strings[0] == ""
    labels = {
        "comm": "app",
        "pid": 185,
        "cpu": "0",
        "cgroup": "/system.slice/app.service",
    }
    names = ("__libc_start_call_main", "main", "work")
    assert (names, 40, labels) in decoded.samples()
    places = {
        decoded.name(number): (
            place[3][0],
            decoded.strings[decoded.mappings[place[2][0]].get(6, [0])[0]],
        )
        for number, place in decoded.locations.items()
        if 2 in place and 3 in place
    }
    assert places["work"] == (0x200, "ab12")
    assert places["vfs_read"] == (0xFFFFFFFF81000050, "")
    assert decoded.fields[10] == [2_000_000_000]


@SOME
@given(profiles.profiles())
def test_speedscope_holds_every_stack(profile: Profile) -> None:
    tree = reader.loads(speedscope.document(profile))
    (sampled,) = tree["profiles"]
    frames = tree["shared"]["frames"]
    found: Counter[tuple[str, ...]] = Counter()
    for stack, weight in zip(sampled["samples"], sampled["weights"], strict=True):
        found[tuple(frames[number]["name"] for number in stack[1:])] += weight
    assert +found == paths(profile)
    assert sampled["endValue"] == profile.total


@SOME
@given(profiles.profiles())
def test_firefox_holds_every_stack(profile: Profile) -> None:
    found: Counter[tuple[str, ...]] = Counter()
    for thread in reader.loads("".join(firefox.document(profile)))["threads"]:
        stacks, samples = thread["stackTable"], thread["samples"]
        for stack, weight in zip(samples["stack"], samples["weight"], strict=True):
            path = []
            while stack is not None:
                function = thread["frameTable"]["func"][stacks["frame"][stack]]
                path.append(thread["stringArray"][thread["funcTable"]["name"][function]])
                stack = stacks["prefix"][stack]
            found[tuple(reversed(path))] += round(weight * (1e6 if profile.unit == "ns" else 1))
    assert +found == paths(profile)


def test_firefox_has_the_time_line() -> None:
    threads = reader.loads("".join(firefox.document(profiles.timed())))["threads"]
    times = {thread["tid"]: thread["samples"]["time"] for thread in threads}
    assert times == {2: [0.0, 60.0], 3: [180.0]}


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a.txt", "text"),
        ("out/a.folded", "folded"),
        ("a.JSON", "json"),
        ("a.json.gz", "json"),
        ("a.pb.gz", "pprof"),
        ("a.pprof", "pprof"),
        ("a.speedscope.json", "speedscope"),
        ("a.speedscope.json.gz", "speedscope"),
        ("a.firefox.json", "firefox"),
        ("a.csv", "csv"),
        ("a.csv.gz", "csv"),
        ("out", None),
        ("a.gz", None),
    ],
)
def test_a_files_name_says_its_format(path: str, name: str | None) -> None:
    assert of_path(path) == name


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_takes_any_name(name: str) -> None:
    for profile in (profiles.hostile(), profiles.example(), Profile()):
        assert all(isinstance(each, str | bytes) for each in writer.write(profile, name))


def test_compressed_pieces_are_one_file() -> None:
    text = list(folded.lines(profiles.example()))
    packed = b"".join(writer.compress([*text, b"!"]))
    assert gzip.decompress(packed).decode() == "".join(text) + "!"
    assert b"".join(writer.compress([*text, b"!"])) == packed, "the time is not in it"


@pytest.mark.parametrize(
    ("unit", "text", "line"),
    [("ns", "    2500\n", "app;main 4000\n"), ("samples", "    2500999\n", "app;main 4000999\n")],
)
def test_people_read_microseconds(unit: str, text: str, line: str) -> None:
    found = Profile(unit=unit)
    found.add((profiles.MAIN,), (), 1_500_000, Labels("app", 1))
    found.add((profiles.MAIN,), (), 2_500_999, Labels("app", 2))
    assert text in "".join(map(str, writer.write(found, "text")))
    assert [*writer.write(found, "folded")] == [line]


@pytest.mark.parametrize(
    ("title", "unit", "line"),
    [
        ("Tracing off-CPU time (us)", "ns", "Tracing off-CPU time (us)\n"),
        ("9 samples of offcpu-time", "ns", "9 samples of offcpu-time (us)\n"),
        ("9 samples of malloc", "bytes", "9 samples of malloc (bytes)\n"),
        ("Sampling\x1b[2J", "samples", "Sampling?[2J\n"),
    ],
)
def test_a_text_is_headed_by_what_was_counted(title: str, unit: str, line: str) -> None:
    assert writer.heading(Profile(title, unit=unit)) == line
