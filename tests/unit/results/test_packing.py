"""What the page gets: every weight once, by path and by what it filters on."""

from __future__ import annotations

import struct
import zlib
from base64 import b64decode
from collections import Counter

import pytest
from hypothesis import given, settings

from purebpf.errors import NotSupportedError
from purebpf.results import Labels, Marks, Profile
from purebpf.results.model.spelling import printable
from purebpf.results.shape.alike_threads import group_threads
from purebpf.results.shape.functions import Functions
from purebpf.results.shape.page_data import Packed, pack
from purebpf.symbols.frame import Address
from tests.support.builders.profiles import MAIN, WORK, example, profiles, timed


def unpacked(packed: Packed) -> Counter[tuple[str, ...]]:
    """Weight by path, read as page/model.js does."""
    data = zlib.decompress(b64decode(packed.data))
    rows, frames = packed.head["counts"]["rows"], packed.head["counts"]["frames"]
    slots = packed.head["counts"]["slots"]
    before = rows if packed.head["compare"] else 0
    code = "I" if len(packed.head["functions"]["name"]) > 0xFFFF else "H"
    layout = f"<{rows}d{before}d{slots}d{rows}I{slots}I{slots}I{frames}{code}{rows}H{rows}H"
    assert struct.calcsize(layout) == len(data)
    values = list(struct.unpack(layout, data))
    weights = values[:rows]
    at = rows + before + 3 * slots + rows
    added = iter(values[at : at + frames])
    keeps, mores = values[-2 * rows : -rows or None], values[-rows:]
    names = packed.head["functions"]["name"]
    found: Counter[tuple[str, ...]] = Counter()
    path: list[str] = []
    for weight, keep, more in zip(weights, keeps, mores[: len(keeps)], strict=True):
        path = path[:keep] + [names[next(added)] for _ in range(more)]
        found[tuple(path)] += int(weight)
    return +found


@settings(max_examples=40)
@given(profiles())
def test_every_stack_is_there(profile: Profile) -> None:
    functions = Functions()
    wanted: Counter[tuple[str, ...]] = Counter()
    with_threads = [row for row in profile.rows() if row.labels.tid]
    alike = group_threads(
        {(row.labels.pid, row.labels.tid): row.labels.comm for row in with_threads},
        [
            ((row.labels.pid, row.labels.tid), functions.path(row))
            for row in with_threads
            if row.user
        ],
    )
    for row in profile.rows():
        numbers = functions.path(row)
        names = [functions.table[number].name for number in numbers]
        thread = []
        if row.labels.tid and profile.unit == "ns":
            name, count = alike[row.labels.pid, row.labels.tid]
            thread = [f"{name} ({count} threads)" if count > 1 else f"{name} ({row.labels.tid})"]
        wanted[tuple(map(printable, [row.labels.process_name, *thread, *names]))] += row.weight
    assert unpacked(pack(profile)) == +wanted


def test_too_deep_a_stack_is_refused_with_its_depth() -> None:
    profile = Profile()
    profile.add((MAIN,) * 65_534, (), 1, Labels("a"))
    assert unpacked(pack(profile)).total() == 1
    profile.add((MAIN,) * 70_000, (), 1, Labels("a"))
    with pytest.raises(NotSupportedError, match=r"a stack of 70000 frames.*up to 65534"):
        pack(profile)


@pytest.mark.slow
def test_numbers_of_many_functions_are_wider() -> None:
    profile = Profile()
    for number in range(70_000):
        profile.add((MAIN._replace(name=str(number), address=Address(number)),), (), 1, Labels("a"))
    assert unpacked(pack(profile)).total() == 70_000


def test_a_comparison_has_both() -> None:
    packed = pack(example(), timed())
    assert packed.head["compare"]
    assert sum(unpacked(packed).values()) == example().total


def test_kinds_of_time_have_stacks_of_their_own() -> None:
    profile = Profile(unit="ns")
    for kind, weight in (("on-CPU", 3), ("off-CPU", 5)):
        profile.add((WORK, MAIN), (), weight, Labels("app", 1), marks=Marks(kind=kind))
    packed = pack(profile)
    assert {each["time"] for each in packed.head["labels"]} == {"off-CPU", "on-CPU"}
    assert packed.head["counts"] == {"rows": 2, "frames": 3, "slots": 0}


def test_functions_have_their_hottest_source_line() -> None:
    profile = Profile()
    for line, weight in ((40, 2), (42, 7), (43, 3)):
        work = WORK._replace(file="/src/shop.c", line=line)
        profile.add((work, MAIN), (), weight, Labels("shop", 185))
    functions = pack(profile).head["functions"]
    sources = dict(zip(functions["name"], functions["source"], strict=True))
    assert sources == {"shop": "", WORK.name: "/src/shop.c:42", MAIN.name: ""}
    assert "source" not in pack(example()).head["functions"]
