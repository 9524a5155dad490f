"""Sentences about the files and peers of system calls."""

from __future__ import annotations

import errno
from collections import Counter

from purebpf.measure.call_targets import CallTargets, describe_targets

PATHS = Counter({"/srv/app.ini": 600, "/etc/hosts": 70, "/a": 9})
CONNECTS = Counter({("127.0.0.1:6379", errno.ECONNREFUSED): 98, ("[::1]:6379", 999): 2})


def test_targets_that_stand_out_are_named_with_their_share() -> None:
    found = CallTargets(PATHS, CONNECTS)
    assert list(describe_targets(found, {"open", "connect"})) == [
        "opens: /srv/app.ini 88 %, /etc/hosts 10 %",
        "connects that fail: 127.0.0.1:6379 (ECONNREFUSED) 98 %",
    ]


def test_calls_that_nobody_asked_for_are_silent() -> None:
    assert list(describe_targets(CallTargets(PATHS, CONNECTS), ())) == []


def test_many_targets_of_equal_weight_are_none_that_stands_out() -> None:
    paths = Counter({f"/srv/{number}": 7 for number in range(50)})
    assert list(describe_targets(CallTargets(paths, Counter()), {"open", "connect"})) == []
