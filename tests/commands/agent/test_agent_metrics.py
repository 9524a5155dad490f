"""Metrics of a running agent: scraped by Debian's Prometheus, and in a file."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from tests.commands.conftest import ROOT
from tests.support.host.faults import slow_host

pytestmark = [pytest.mark.needs("bpf", "perf_event", "promtool"), pytest.mark.any_kernel]
PATIENCE_S = 240 if slow_host() else 60
CALLS = 100_003
BUSY = f"""
import os
while True:
    input()
    for _ in range({CALLS}): os.getppid()
    print("done", flush=True)
"""


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def wait_for(what: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < end, what
        time.sleep(0.2)


def test_prometheus_reads_what_the_agent_counts(tmp_path: Path) -> None:
    port, own_port = free_port(), free_port()
    textfile = tmp_path / "purebpf.prom"
    (tmp_path / "agent.toml").write_text(
        f"[agent]\nstate = '{tmp_path}/state'\nwindow_s = 2\njitter_s = 0\nbudget = 0.0\n"
        "[cpu]\nfrequency = 99\ncall_graph = 'fp'\npython = false\n"
        f"[metrics]\nlisten = '127.0.0.1:{port}'\ntextfile = '{textfile}'\n"
        f"scheduler = true\nsyscalls = true\n[[sink]]\ntype = 'dir'\npath = '{tmp_path}/out'\n"
    )
    (tmp_path / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: purebpf\n"
        f"  static_configs: [{{targets: ['127.0.0.1:{port}']}}]\n"
    )
    agent = [sys.executable, "-m", "purebpf", "agent", "--config", str(tmp_path / "agent.toml")]
    server = ["prometheus", f"--config.file={tmp_path}/prometheus.yml",
              f"--storage.tsdb.path={tmp_path}/tsdb",
              f"--web.listen-address=127.0.0.1:{own_port}"]  # fmt: skip
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with (
        subprocess.Popen(agent, cwd=ROOT, **quiet) as process,
        subprocess.Popen(server, **quiet) as prometheus,
        subprocess.Popen(
            [sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as busy,
    ):
        try:

            def ask(expression: str) -> float:
                url = f"http://127.0.0.1:{own_port}/api/v1/query?query={quote(expression)}"
                try:
                    with urlopen(url, timeout=5) as answer:
                        result = json.load(answer)["data"]["result"]
                except (URLError, OSError):
                    return 0.0
                return float(result[0]["value"][1]) if result else 0.0

            wait_for(lambda: ask("purebpf_agent_windows_total") >= 1)
            before = ask("purebpf_syscalls_total{syscall='getppid'}")
            assert busy.stdin
            assert busy.stdout
            busy.stdin.write("\n")
            busy.stdin.flush()
            assert busy.stdout.readline() == "done\n"
            counted = f"purebpf_syscalls_total{{syscall='getppid'}} >= {before + CALLS}"
            wait_for(lambda: ask(counted) > 0)
            assert ask("up{job='purebpf'}") == 1
            assert ask("sum(purebpf_cpu_seconds_total)") > 0
            assert ask("purebpf_runqueue_wait_seconds_count") > 0
            assert ask("purebpf_cpu_burst_seconds_bucket{le='+Inf'}") > 0
            assert ask("purebpf_agent_samples_seen_total") > 0
            assert ask("scrape_samples_scraped{job='purebpf'}") < 2000
            with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                text = answer.read().decode()
            checked = subprocess.run(
                ["promtool", "check", "metrics"],
                input=text, text=True, capture_output=True, check=False,
            )  # fmt: skip
            assert checked.returncode == 0, checked.stdout + checked.stderr
            assert re.search(r"^purebpf_build_info\{version=", textfile.read_text(), re.MULTILINE)
            assert os.stat(textfile).st_mode & 0o777 == 0o644
        finally:
            for child in (process, prometheus, busy):
                child.terminate()
