"""`purebpf top`: tables of the known workloads, each second and in the end."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import pytest

from purebpf.results import Profile
from purebpf.tools.top.options import parse
from purebpf.tools.top.render import render
from tests.commands.conftest import ROOT, Workloads
from tests.support.builders.profiles import example

SLEEPER = "import os, time; print(1, flush=True)\nwhile os.getppid(): time.sleep(.01)"

TABLE = """\
now: 100 samples
   self   total  samples  function
 40.00%  70.00%       40  work [app]
 35.00%  35.00%       35  vfs_read [kernel]
 10.00%  40.00%       10  help [app]
                          and 6 more
"""


@pytest.mark.any_kernel
def test_a_table_has_the_heaviest_functions_first() -> None:
    assert "".join(render(example(), by="function", lines=3, heading="now")) == TABLE


@pytest.mark.any_kernel
@pytest.mark.parametrize(
    ("by", "line"),
    [
        ("module", " 50.00%  84.00%       50  /srv/app\n"),
        ("comm", " 80.00%  80.00%       80  app\n"),
        ("process", " 80.00%  80.00%       80  app (185)\n"),
        ("thread", " 80.00%  80.00%       80  app (185)\n"),
        ("cgroup", " 80.00%  80.00%       80  /system.slice/app.service\n"),
    ],
)
def test_tables_by_other_keys_have_their_lines(by: str, line: str) -> None:
    assert line in render(example(), by=by, lines=1, heading="now")


@pytest.mark.any_kernel
def test_tables_can_be_sorted_by_total() -> None:
    lines = list(render(example(), by="function", lines=2, heading="now", sort="total"))
    assert [line[8:15].strip() for line in lines[2:4]] == ["89.00%", "84.00%"]


@pytest.mark.any_kernel
def test_nothing_sampled_is_a_table_too() -> None:
    first, *_ = render(Profile(), by="function", lines=3, heading="now")
    assert first == "now: 0 samples\n"


@pytest.mark.any_kernel
def test_every_command_line_of_its_page_parses() -> None:
    page = (ROOT / "docs/top.md").read_text()
    lines = re.findall(r"^\$ sudo \.venv/bin/purebpf top(.*)$", page, re.MULTILINE)
    assert lines
    for line in lines:
        assert parse(shlex.split(line))


@pytest.mark.any_kernel
@pytest.mark.needs("bpf", "perf_event", "gcc")
def test_tables_follow_each_other(workloads: Workloads) -> None:
    with workloads.running("split") as pid:
        done = subprocess.run(
            [sys.executable, "-m", "purebpf", "top", "-p", str(pid), "-i", "0.5", "-F", "199", "4"],
            capture_output=True, text=True, check=False, cwd=ROOT,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *tables, whole = done.stdout.split("\n\n")
    assert len(tables) >= 2
    sums = [int(re.match(r"\d\d:\d\d:\d\d: (\d+) samples\n", table)[1]) for table in tables]  # type: ignore[index]
    total = re.match(r"in all: (\d+) samples\n", whole)
    assert total
    assert sum(sums) <= int(total[1])
    assert "spend_seventy [split]" in whole
    assert re.search(r"^lost: ", done.stderr, re.MULTILINE)


@pytest.mark.any_kernel
@pytest.mark.needs("bpf", "vmlinux_btf")
@pytest.mark.parametrize(
    ("screen", "row"),
    [
        ("syscalls", r" +\d+ +0 .+  getppid$"),
        ("offcpu", r" *\d.*  (idle: )?(sleeps|waits?) .*$"),
        ("runqueue", r" +\d+ .+  \S+ \(PID\)$"),
    ],
)
def test_other_screens_show_what_a_process_does(screen: str, row: str) -> None:
    with subprocess.Popen([sys.executable, "-c", SLEEPER], stdout=subprocess.PIPE) as sleeper:
        assert sleeper.stdout
        sleeper.stdout.readline()
        pid = sleeper.pid
        words = f"-p {pid} -i .4 --screen {screen} 1".split()
        done = subprocess.run(
            [sys.executable, "-m", "purebpf", "top", *words],
            capture_output=True, text=True, check=False, cwd=ROOT,
        )  # fmt: skip
        sleeper.kill()
    assert done.returncode == 0, done.stderr
    *tables, whole = done.stdout.split("\n\n")
    for table in (*tables, whole):  # on a busy machine the end may come before the first interval
        assert any(re.match(row.replace("PID", str(pid)), line) for line in table.splitlines()), (
            table
        )
