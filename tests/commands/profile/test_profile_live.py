"""`profile --serve`: what the page gets adds up to what was counted."""

from __future__ import annotations

import json as reader
import re
import signal
import urllib.request

import pytest

from tests.commands.conftest import Workloads
from tests.commands.profile.test_profile_command import loss, start

pytestmark = [pytest.mark.needs("bpf", "perf_event", "gcc"), pytest.mark.any_kernel]


def test_seconds_and_snapshot_and_result(workloads: Workloads) -> None:
    with (
        workloads.running("split") as pid,
        start("--serve", "-p", str(pid), "-F", "199", "--format", "json") as profiler,
    ):
        assert profiler.stderr is not None
        found = re.search(r"http://\S+", profiler.stderr.readline())
        assert found
        base, _, token = found.group().partition("?")
        with urllib.request.urlopen(f"{base}events?{token}", timeout=30) as stream:
            totals = []
            for _ in range(2):
                assert stream.readline() == b"event: second\n"
                head = reader.loads(stream.readline().removeprefix(b"data: "))["head"]
                stream.readline()
                totals.append(head["total"])
                assert "spend_seventy" in head["functions"]["name"]
        with urllib.request.urlopen(f"{base}snapshot.json?{token}", timeout=30) as response:
            snapshot = reader.load(response)
        profiler.send_signal(signal.SIGINT)
        output, errors = profiler.communicate()
    assert profiler.returncode == 0
    result = reader.loads(output)
    assert all(totals)
    assert sum(totals) <= snapshot["total"] <= result["total"]
    assert result["total"] == result["about"]["counted"], "nothing slipped through"
    assert loss(errors)["map_full"] == "0"


def test_what_is_one_too_many_is_lost_and_said(workloads: Workloads) -> None:
    arguments = ("--serve", "-F", "499", "--hash-storage-size", "1", "--format", "json", "2.5")
    with workloads.running("split"), start(*arguments) as profiler:
        output, errors = profiler.communicate()
    result = reader.loads(output)
    assert len(result["stacks"]) == 1
    assert result["loss"]["map_full"] > 0
    assert loss(errors)["map_full"] == str(result["loss"]["map_full"])
