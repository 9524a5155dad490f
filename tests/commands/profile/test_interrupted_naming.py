"""Ctrl-C while names are looked up: what is named so far is printed, and the rest is counted."""

from __future__ import annotations

import re
import signal
import subprocess
import sys

import pytest

from tests.commands.conftest import ROOT, Workloads

pytestmark = [pytest.mark.needs("bpf", "perf_event", "gcc"), pytest.mark.any_kernel]

SLOWLY = """
import sys, time
from purebpf.kernel.symbolize.symbolizer import Symbolizer
from purebpf.profile.__main__ import main

look_up = Symbolizer._look_up
count = 0

def slowly(*arguments):
    global count
    count += 1
    if count == 2:
        print("naming", file=sys.stderr, flush=True)
        time.sleep(1)
    return look_up(*arguments)

Symbolizer._look_up = slowly
sys.exit(main(sys.argv[1:]))
"""


def test_it_prints_what_there_is(workloads: Workloads) -> None:
    command = [sys.executable, "-c", SLOWLY, "-U", "-F", "499"]
    pipe = subprocess.PIPE
    with (
        workloads.running("split") as pid,
        subprocess.Popen(
            [*command, "-p", str(pid), "0.5"], stdout=pipe, stderr=pipe, text=True, cwd=ROOT
        ) as profiler,
    ):
        assert profiler.stderr is not None
        assert profiler.stderr.readline() == "naming\n"
        profiler.send_signal(signal.SIGINT)
        output, errors = profiler.communicate(timeout=60)
    assert profiler.returncode == 0, errors
    assert "[unknown]" in output
    found = re.search(r"names_skipped=(\d+)", errors)
    assert found, errors
    assert int(found[1]) > 0
    assert "naming was interrupted" in " ".join(errors.split())
