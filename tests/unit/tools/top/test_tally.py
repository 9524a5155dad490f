"""Tallies of top's screens: merged, subtracted, as rows and as text."""

from __future__ import annotations

from purebpf.cli.sheet import Step
from purebpf.results.shape.histogram import BUCKETS
from purebpf.tools.top.tally import Tally, columns, differences, merge, rows, text


def histogram(number: int) -> tuple[int, ...]:
    return (*(0,) * 8, number, *(0,) * (BUCKETS - 9))


READ = Tally(7, "sh (7)", "read", "read", 3, 300, 1, 200)
WRITE = Tally(7, "sh (7)", "write", "write", 1, 50, 0, 50)
OTHER = Tally(8, "cat (8)", "read", "read", 5, 650, 0, 400)


def test_tallies_of_one_place_are_added() -> None:
    assert merge([READ, OTHER, READ]) == [READ._replace(number=6, total_ns=600, errors=2), OTHER]


def test_owners_have_what_their_items_have_together() -> None:
    sums = {tally.owner: tally[4:8] for tally in merge([READ, WRITE, OTHER], by_owner=True)}
    assert sums == {7: (4, 350, 1, 200), 8: (5, 650, 0, 400)}


def test_histograms_are_added_also_to_none() -> None:
    one = READ._replace(buckets=histogram(3))
    (both,) = merge([one, READ])
    assert both.buckets == histogram(3)
    (both,) = merge([one, one])
    assert both.buckets == histogram(6)


def test_an_interval_is_what_came_since_the_last_reading() -> None:
    before = READ._replace(buckets=histogram(3))
    now = READ._replace(number=5, total_ns=900, buckets=histogram(5))
    assert list(differences([now, WRITE], [before, OTHER])) == [
        before._replace(number=2, total_ns=600, buckets=histogram(2)),
        WRITE,
    ]
    assert not list(differences([now], [now]))


def test_a_wait_that_moved_to_another_row_takes_no_time_back() -> None:
    (left,) = differences([READ._replace(number=4, total_ns=100)], [READ])
    assert (left.number, left.total_ns) == (1, 0)


def test_rows_are_items_owners_or_the_items_of_an_owner() -> None:
    tallies = [READ, WRITE, OTHER]
    assert [row.name for row in rows(tallies, ())] == ["read", "write", "read"]
    owners = {row.name: row.values for row in rows(tallies, (), by_owner=True)}
    assert owners == {"sh (7)": (4, 1, 350, 87.5, 200), "cat (8)": (5, 0, 650, 130, 400)}
    inside = rows(tallies, [Step("process", 8, "cat (8)")])
    assert [(row.name, row.share) for row in inside] == [("read", 0.65)]


def test_a_table_has_its_heaviest_lines_and_says_how_many_more() -> None:
    found = rows([OTHER, READ, WRITE], ())
    assert "".join(text("now", columns("calls", errors=True), "syscall", found, 2)) == (
        "now\n"
        "   calls  errors    total      avg      max  syscall\n"
        "       5       0   650 ns   130 ns   400 ns  read\n"
        "       3       1   300 ns   100 ns   200 ns  read\n"
        "                                             and 1 more\n"
    )


def test_a_histogram_gives_a_percentile() -> None:
    (row,) = rows([READ._replace(buckets=histogram(3))], ())
    assert len(row.cells) == len(columns("waits"))
    assert 4 <= row.values[-1] < 16
