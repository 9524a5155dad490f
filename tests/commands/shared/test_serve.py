"""`--serve` of every command that has it: the same page, the same token, the same end."""

from __future__ import annotations

import json as reader
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from purebpf.http.server import PENDING
from tests.commands.conftest import ROOT, Workloads
from tests.support.host.privilege import as_user
from tests.support.nightly import by_day

pytestmark = [pytest.mark.needs("bpf", "perf_event", "gcc"), pytest.mark.any_kernel]

FUNCTION = {"profile": "spend", "offcpu": "read", "wall": "read"}
"""What the workload's threads are in, as each command sees them."""

ON_CPU_SPLIT = ("split",)
WAITING = ("wait", "three")
WORKLOAD = {"profile": ON_CPU_SPLIT, "offcpu": WAITING, "wall": WAITING}

pages = pytest.mark.parametrize("name", by_day(FUNCTION, ["profile"]))


def command(name: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "purebpf", name, *arguments]


@contextmanager
def serving(name: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """The running command, the address of its page and the token."""
    pipe = subprocess.PIPE
    words = command(name, "--serve", *arguments)
    with subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, cwd=ROOT) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            found = re.fullmatch(r"live flame graph: (http://127\.0\.0\.1:\d+/)\?(.+)\n", line)
            assert found, line
            yield process, found[1], found[2]
        finally:
            process.kill()


def seconds(base: str, token: str, count: int) -> list[dict[str, Any]]:
    """The heads of the first events."""
    found = []
    with urllib.request.urlopen(f"{base}events?{token}", timeout=30) as stream:
        for _ in range(count):
            assert stream.readline() == b"event: second\n"
            found.append(reader.loads(stream.readline().removeprefix(b"data: "))["head"])
            stream.readline()
    return found


@pages
def test_events_snapshot_and_result_agree(name: str, workloads: Workloads) -> None:
    with (
        workloads.running(*WORKLOAD[name]) as pid,
        serving(name, "-p", str(pid), "--format", "json") as (process, base, token),
    ):
        heads = seconds(base, token, 3)
        with urllib.request.urlopen(f"{base}snapshot.json?{token}", timeout=30) as response:
            snapshot = reader.load(response)
            assert 'filename="snapshot.json"' in response.headers["Content-Disposition"]
        with urllib.request.urlopen(f"{base}snapshot.html?{token}", timeout=30) as response:
            assert b"connect-src 'none'" in response.read(), "a page without viewers"
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    result = reader.loads(output)
    shown = [text for head in heads for text in head["functions"]["name"]]
    assert any(FUNCTION[name] in text for text in shown), shown
    totals = [head["total"] for head in heads]
    assert any(totals)
    assert {head["unit"] for head in heads} == {snapshot["unit"]} == {result["unit"]}
    assert sum(totals) <= snapshot["total"] <= result["total"]
    assert snapshot["total"] == sum(row["weight"] for row in snapshot["stacks"])
    assert "\nlost: " in errors


@pages
def test_the_page_needs_its_token(name: str, workloads: Workloads) -> None:
    with (
        workloads.running(*WORKLOAD[name]) as pid,
        serving(name, "--format", "json", "-p", str(pid)) as (process, base, _),
    ):
        for path in ("", "events", "snapshot.json", "snapshot.html"):
            for token in ("", "?token=", "?token=wrong"):
                with pytest.raises(urllib.error.HTTPError) as refused:
                    urllib.request.urlopen(f"{base}{path}{token}", timeout=30)
                with refused.value as answer:
                    assert answer.status == 403
                    assert answer.read().startswith(b"The token is missing or wrong")
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert reader.loads(output)["schema"] == "purebpf.report/1"


@pages
def test_a_port_in_use_is_reported(name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = command(name, "--serve", f":{taken.getsockname()[1]}", "5")
        done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 1
    assert "bind(2) failed with EADDRINUSE" in " ".join(done.stderr.split())
    assert "use --serve without a port to listen on a free one" in " ".join(done.stderr.split())
    assert done.stdout == ""


@pytest.mark.needs("setpriv")
def test_a_thousand_slow_connections_of_another_user(workloads: Workloads) -> None:
    """Without the token they take neither descriptors nor memory, nor the page from its owner."""
    with (
        workloads.running(*WORKLOAD["profile"]) as pid,
        serving("profile", "-p", str(pid), "--format", "json") as (process, base, token),
    ):
        seconds(base, token, 2)
        before, grown = descriptors(process.pid), rss_kib(process.pid)
        port = str(urlsplit(base).port)
        code = (Path(__file__).parent / "slow_clients.py").read_text()
        with subprocess.Popen(
            [*as_user("ordinary"), sys.executable, "-S", "-c", code, port, "1000"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        ) as flood:  # fmt: skip
            assert flood.stdin is not None
            assert flood.stdout is not None
            assert flood.stdout.readline() == "tried\n"
            assert descriptors(process.pid) <= before + PENDING + 8
            heads = seconds(base, token, 2)
            with urllib.request.urlopen(f"{base}snapshot.json?{token}", timeout=30) as response:
                assert reader.load(response)["total"] > 0
            assert rss_kib(process.pid) - grown < 20_000
            flood.stdin.close()
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert [head["unit"] for head in heads] == ["samples"] * 2
    assert reader.loads(output)["total"] > 0


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def rss_kib(pid: int) -> int:
    found = re.search(r"^VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found
    return int(found[1])
