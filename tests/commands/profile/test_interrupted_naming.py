"""Ctrl-C while names are looked up: what is named so far is printed, and the rest is counted."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
import urllib.request

import pytest

from tests.commands.conftest import ROOT, Workloads

pytestmark = [pytest.mark.needs("bpf", "perf_event", "gcc"), pytest.mark.any_kernel]

SLOWLY = """
import sys, time
from purebpf.observe.symbols.symbolizer import Symbolizer
from purebpf.tools.profile.__main__ import main

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

SLOW_PAGE = """
import sys, time
from purebpf.observe.symbols.symbolizer import Symbolizer
from purebpf.tools.profile.session import Profiler
from purebpf.tools.profile.__main__ import main

look_up = Symbolizer._look_up
stop = Profiler.stop
count = 0
is_over = False

def slowly(*arguments):
    global count
    count += 1
    if count == 2:
        print("naming", file=sys.stderr, flush=True)
    if not is_over:
        time.sleep(4)
    return look_up(*arguments)

def last(self):
    global is_over
    is_over = True
    return stop(self)

Symbolizer._look_up = slowly
Profiler.stop = last
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
    found = re.search(r"lost: (\d+) addresses were not looked up", " ".join(errors.split()))
    assert found, errors
    assert int(found[1]) > 0
    assert "naming was interrupted" in " ".join(errors.split())


def test_it_does_not_wait_for_the_names_of_the_live_page(workloads: Workloads) -> None:
    """The page's names take four seconds each; the result's take no time, and are all there."""
    command = [sys.executable, "-c", SLOW_PAGE, "-U", "-F", "499", "--serve"]
    pipe = subprocess.PIPE
    with (
        workloads.running("split") as pid,
        subprocess.Popen(
            [*command, "-p", str(pid)], stdout=pipe, stderr=pipe, text=True, cwd=ROOT
        ) as profiler,
    ):
        assert profiler.stderr is not None
        url = re.search(r"http://\S+", profiler.stderr.readline())
        assert url is not None
        with urllib.request.urlopen(url[0].replace("?", "events?"), timeout=30):
            while profiler.stderr.readline() != "naming\n":
                assert profiler.poll() is None
            begun = time.monotonic()
            profiler.send_signal(signal.SIGINT)
            output, errors = profiler.communicate(timeout=60)
    assert profiler.returncode == 0, errors
    assert time.monotonic() - begun < 10  # the name that was being looked up, and no other
    assert "split" in output
    assert "not looked up" not in " ".join(errors.split())
