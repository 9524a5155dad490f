"""Differences are parts of the whole, and say what is new and what is gone."""

from __future__ import annotations

import json as reader

import pytest

from purebpf.errors import FormatError
from purebpf.results import Labels, Profile
from purebpf.results.shape import diff, page_data
from purebpf.symbols.frame import Address, Frame
from tests.support.builders.profiles import HELP, MAIN, READ, WORK, example

TEXT = """\
a -> b
100 samples before, 400 after; percent of each

  before    after   change  function
   80.00    45.00   -35.00  work [app]
    0.00    35.00   +35.00  vfs_read [kernel]

vanished (1), with callees:
   20.00     0.00           help [app]

new (1), with callees:
    0.00    35.00           vfs_read [kernel]
"""


def profile(*rows: tuple[tuple[object, ...], int]) -> Profile:
    found = Profile()
    for stack, weight in rows:
        found.add(stack, (), weight, Labels("app", 1))  # type: ignore[arg-type]
    return found


BEFORE = profile(((WORK, MAIN), 60), ((WORK, HELP, MAIN), 20), ((MAIN,), 20))
AFTER = profile(((WORK, MAIN), 180), ((READ, WORK, MAIN), 140), ((MAIN,), 80))


def test_weights_are_parts_of_the_whole() -> None:
    found = {change.function.name: change for change in diff.compare(BEFORE, AFTER, "").changes}
    assert found["main"].own == 0
    assert found["work"][1:5] == (80, 45, 80, 80)
    assert (found["help"].state, found["vfs_read"].state, found["work"].state) == (
        *("vanished", "new", ""),
    )


def test_the_worst_is_what_grew_most() -> None:
    assert diff.compare(BEFORE, AFTER, "").worst == 35
    assert diff.compare(AFTER, BEFORE, "").worst == 35
    assert diff.compare(BEFORE, BEFORE, "").worst == 0


def test_the_text_has_the_changes_of_each_function() -> None:
    assert "".join(diff.text(diff.compare(BEFORE, AFTER, "a -> b"))) == TEXT


def test_text_without_change() -> None:
    told = "".join(diff.text(diff.compare(BEFORE, BEFORE, "a -> a")))
    assert told.endswith("\n\nno function changed\n")


def test_text_stops_at_the_top() -> None:
    told = "".join(diff.text(diff.compare(BEFORE, AFTER, "a -> b"), top=1))
    assert "  and 1 more\n" in told
    assert "vfs_read [kernel]\n\nvanished" not in told


def test_the_json_has_the_changes_of_each_function() -> None:
    tree = reader.loads(diff.document(diff.compare(BEFORE, AFTER, "a -> b")))
    assert (tree["schema"], tree["before"], tree["after"], tree["worst"]) == (
        *(diff.SCHEMA, 100, 400, 35.0),
    )
    assert tree["functions"][0] == {
        "name": "work",
        "module": "/srv/app",
        "kind": "user",
        "state": "",
        "own_before": 80.0,
        "own_after": 45.0,
        "total_before": 80.0,
        "total_after": 80.0,
        "by_chance": False,
    }
    assert tree["cpus"] is None


def rated(elapsed_s: float, **weights: int) -> Profile:
    """A profile of 100 Hz: a CPU is 100 samples in each second."""
    made = profile(*(((_frame(name, "/srv/app"), MAIN), count) for name, count in weights.items()))
    made.about |= {"frequency_hz": 100, "elapsed_s": elapsed_s}
    return made


def test_cpus_show_that_one_function_grew_and_the_other_did_not_shrink() -> None:
    before, after = rated(10, parse=400, send=400), rated(20, parse=2400, send=800)
    difference = diff.compare(before, after, "a -> b")
    assert difference.cpus == pytest.approx((0.8, 1.6))
    assert "".join(diff.text(difference)) == (
        "a -> b\n"
        "0.80 CPUs before, 1.60 after (800 samples before, 3200 after)\n\n"
        "  before    after   change  function\n"
        "    0.40     1.20    +0.80  parse [app]\n"
        "1 function changed by no more than chance explains (all: --all)\n"
    )


def test_chance_is_hidden_unless_all_is_asked_for() -> None:
    before, after = profile(((WORK, MAIN), 60), ((HELP, MAIN), 40)), profile(((WORK, MAIN), 55))
    after.add((HELP, MAIN), (), 45, Labels("app", 1))  # type: ignore[arg-type]
    difference = diff.compare(before, after, "a -> b")
    assert "2 functions changed by no more than chance" in "".join(diff.text(difference))
    assert "+5.00  help [app]" in "".join(diff.text(difference, everything=True))


def test_weights_that_are_not_samples_do_not_vary_by_chance() -> None:
    before, after = (Profile(unit="ns") for _ in range(2))
    for made, weight in ((before, 5), (after, 6)):
        made.add((WORK, MAIN), (), weight, Labels("app", 1))  # type: ignore[arg-type]
        made.add((HELP, MAIN), (), 5, Labels("app", 1))  # type: ignore[arg-type]
    assert "work [app]" in "".join(diff.text(diff.compare(before, after, "")))


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        (Profile(), AFTER, "before: cannot compare an empty profile"),
        (BEFORE, Profile(), "after: cannot compare an empty profile"),
        (
            BEFORE,
            Profile(unit="ns"),
            "cannot compare profiles of different units: one counts samples, one ns",
        ),
    ],
)
def test_what_cannot_be_compared(before: Profile, after: Profile, problem: str) -> None:
    with pytest.raises(FormatError, match=problem):
        diff.compare(before, after, "a -> b")


def test_every_function_is_in_it() -> None:
    found = diff.compare(example(), example(), "").changes
    assert {change.function.name for change in found} >= {"work", "[unknown]", "vfs_read"}


def _of(*entries: tuple[Frame, int]) -> Profile:
    return profile(*(((entry, MAIN), weight) for entry, weight in entries))


def _frame(name: str, module: str, build_id: str = "", kind: str = "user") -> Frame:
    return Frame(name, 0, module, Address(1), kind, build_id)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/srv/app-1.2.0/bin/app", "/opt/build/app"),
        ("/usr/lib/libz.so.1.2.11", "/usr/local/lib/libz.so.1.3"),
        ("/lib/libc-2.31.so", "/lib/libc.so.6"),
        ("/usr/bin/python3.11", "/usr/bin/python3.12"),
        ("/usr/bin/clang-14", "/usr/bin/clang-19"),
    ],
)
def test_functions_are_the_same_in_another_build_of_their_file(one: str, other: str) -> None:
    before = _of((_frame("work", one, "aa"), 60), (_frame("rest", one, "aa"), 40))
    after = _of((_frame("work", other, "bb"), 80), (_frame("rest", other, "bb"), 20))
    found = diff.compare(before, after, "")
    changes = {change.function.name: change for change in found.changes}
    assert changes["work"][1:3] == (60, 80)
    assert (changes["work"].state, changes["work"].function.module) == ("", other)
    assert found.worst == 20
    assert len(changes) == 3


@pytest.mark.parametrize(
    "other",
    [
        _frame("work", "/srv/app", kind="kernel"),
        _frame("work", "/srv/apply"),
        _frame("works", "/srv/app"),
    ],
)
def test_other_kinds_files_and_names_are_other_functions(other: Frame) -> None:
    found = diff.compare(_of((_frame("work", "/srv/app"), 1)), _of((other, 1)), "")
    assert {change.state for change in found.changes} == {"", "new", "vanished"}


def test_functions_without_a_symbol_are_the_same_in_one_build_only() -> None:
    before = _of(
        (_frame("x.so!0x40", "/a/x.so", "aa"), 10), (_frame("x.so!0x80", "/a/x.so", "aa"), 90)
    )
    moved = _of(
        (_frame("x.so!0x40", "/b/x.so", "aa"), 10), (_frame("x.so!0x80", "/b/x.so", "aa"), 90)
    )
    rebuilt = _of((_frame("x.so!0x40", "/a/x.so", "bb"), 90))
    assert diff.compare(before, moved, "").worst == 0
    found = diff.compare(before, rebuilt, "")
    states = [change.state for change in found.changes if "!" in change.function.name]
    assert sorted(states) == ["new", "vanished", "vanished"]


def test_the_page_compares_the_same_functions() -> None:
    before = _of((_frame("work", "/old/app"), 60))
    after = _of((_frame("work", "/new/app"), 80))
    packed = page_data.pack(after, before)
    assert packed.head["counts"]["rows"] == 1
    assert packed.head["texts"].count("/new/app") == 1
    assert "/old/app" not in packed.head["texts"]
    one = page_data.pack(before)
    assert "/old/app" in one.head["texts"]
