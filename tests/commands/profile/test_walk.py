"""The OBSERVE walk of docs/architecture.md: each hop is there, and `profile` takes it."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.commands.conftest import ROOT, Workloads

pytestmark = [pytest.mark.needs("bpf", "perf_event", "gcc"), pytest.mark.any_kernel]

PAGE = (ROOT / "docs/architecture.md").read_text()
HOP = re.compile(r"^\| (\w*) ?\| `([\w.]+)` \| `([\w/.]+)` \|", re.MULTILINE)

FOLLOW = """
import os, sys
import purebpf
from purebpf.tools.profile.__main__ import main

root = os.path.dirname(purebpf.__file__)
seen = {}

def hook(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(root):
        seen.setdefault((code.co_qualname, os.path.relpath(code.co_filename, root)))

sys.setprofile(hook)
status = main(sys.argv[1:])
sys.setprofile(None)
print("WALK", *(f"{where}:{name}" for name, where in seen), file=sys.stderr)
sys.exit(status)
"""


def hops() -> list[tuple[str, str]]:
    """The part of the walk that each belongs to, and the hop as file:function, in order."""
    section = PAGE[PAGE.index("## The OBSERVE walk") :]
    section = section[: section.index("\n## ", 1)]
    found = []
    part = ""
    for name, hop, where in HOP.findall(section):
        part = name or part
        found.append((part, f"{where}:{hop}"))
    return found


def test_profile_takes_every_hop_in_this_order(workloads: Workloads) -> None:
    with workloads.running("split") as pid:
        done = subprocess.run(
            [sys.executable, "-c", FOLLOW, "-v", "-F", "499", "-p", str(pid), "--tree", "3"],
            capture_output=True, text=True, check=False, cwd=ROOT,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    walked = done.stderr.partition("WALK ")[2].split()
    drawn = hops()
    assert len(drawn) > 20
    if "by unwind tables" not in done.stderr:  # a kernel or CPU that cannot
        drawn = [(part, hop) for part, hop in drawn if part != "walk"]
    assert {hop for _, hop in drawn} <= {*walked}
    # a ring is drained whenever it is half full, or at the end
    order = [walked.index(hop) for part, hop in drawn if part != "ring"]
    assert order == sorted(order)
    early = "loader/perf/perf_ring.py:PerfRing.consume"  # while the run begins, too
    rings = [walked.index(hop) for part, hop in drawn if part == "ring" and hop != early]
    assert rings == sorted(rings)
