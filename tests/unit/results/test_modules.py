"""The table by module counts a stack once for each module it is in."""

from __future__ import annotations

from purebpf.results.shape import table
from tests.support.builders.profiles import LIBC, example


def test_modules_have_their_own_and_total_weight() -> None:
    found = {name: (own, total) for name, own, total in table.modules(example())}
    assert found == {
        "/srv/app": (50, 84),
        LIBC: (0, 89),
        "/opt/bin/tool": (9, 9),
        "kernel": (39, 39),
        "": (0, 5),
    }


def test_the_greatest_own_weight_is_first() -> None:
    assert [name for name, *_ in table.modules(example())][:2] == ["/srv/app", "kernel"]
