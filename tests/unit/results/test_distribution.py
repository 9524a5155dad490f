"""runqlat's and cpudist's layouts."""

from __future__ import annotations

from purebpf.results import Cause, Loss
from purebpf.results.shape.distribution import Distribution, Group, json_document, text
from tests.support.builders.histograms import filled

STARS = "*" * 40
ALL = Distribution(Group(), filled([0, 1, 1, 1, 5, 6]), 14_600)


def test_one_histogram_for_all() -> None:
    assert "".join(text([ALL], "usecs", 1000, totals=False)) == (
        "     usecs               : count     distribution\n"
        f"         0 -> 1          : 4        |{STARS}|\n"
        f"         2 -> 3          : 0        |{' ' * 40}|\n"
        f"         4 -> 7          : 2        |{'*' * 20:<40}|\n"
        "     p50 1, p90 6, p99 6 usecs\n"
    )


def test_the_busiest_group_is_the_last_and_has_totals() -> None:
    groups = [
        Distribution(Group("pid", 185, "ssh\td"), filled([2, 3]), 5_900),
        Distribution(Group("pid", 7), filled([3]), 3_100),
    ]
    assert "".join(text(groups, "usecs", 1000, totals=True)) == (
        "\npid = 7\n"
        "     usecs               : count     distribution\n"
        f"         2 -> 3          : 1        |{STARS}|\n"
        "     p50 3, p90 3, p99 3 usecs\n"
        "\navg = 3 usecs, total: 3 usecs, count: 1\n"
        "\npid = 185 ssh?d\n"
        "     usecs               : count     distribution\n"
        f"         2 -> 3          : 2        |{STARS}|\n"
        "     p50 2, p90 3, p99 3 usecs\n"
        "\navg = 2 usecs, total: 5 usecs, count: 2\n"
    )


def test_nothing_is_an_empty_histogram() -> None:
    assert "".join(text([Distribution(Group(), filled([]), 0)], "usecs", 1000, totals=True)) == ""


def test_the_json_has_the_histograms_of_each_group() -> None:
    loss = Loss(causes=(Cause("rows_full", 2, "2 found no row"),))
    groups = [
        ALL,
        Distribution(Group("tid", 9, "worker"), filled([]), 0),
        Distribution(Group("cgroup", 40, "/a"), filled([]), 0),
        Distribution(Group("pidns", 50), filled([]), 0),
    ]
    document = json_document(groups, 1000, loss, {"elapsed_s": 1.5})
    found = document.pop("groups")
    assert document == {"elapsed_s": 1.5, "unit_ns": 1000, "loss": {"rows_full": 2}}
    assert isinstance(found, list)
    assert found[0] == {
        "group": {},
        "count": 6,
        "total_ns": 14_600,
        "p50_ns": 1000,
        "p90_ns": 6000,
        "p99_ns": 6000,
        "buckets": [[0, 1000, 1], [1000, 2000, 3], [5000, 6000, 1], [6000, 7000, 1]],
    }
    assert [each["group"] for each in found[1:]] == [
        {"tid": 9, "comm": "worker"},
        {"cgroup_id": 40, "path": "/a"},
        {"pidns": 50},
    ]
    assert found[1]["p50_ns"] is None
