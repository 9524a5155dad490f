"""`purebpf doctor`: what it says of this machine is so, for root and for others."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from purebpf.commands import COMMANDS as LISTED
from purebpf.loader.features.attach_features import KINDS
from tests.support.environment import COMMANDS, OFFLINE, run
from tests.support.host.privilege import as_user


def test_as_root_it_agrees_with_the_machine() -> None:
    result = run("doctor", "--json")
    report = json.loads(result.stdout)
    assert {each["name"] for each in report["commands"]} == {*LISTED}
    blocked = [each for each in report["commands"] if each["obstacles"]]
    assert result.returncode == bool(blocked)
    settings = {each["name"]: each["value"] for each in report["settings"]}
    stack = Path("/proc/sys/kernel/perf_event_max_stack").read_text().strip()
    assert settings["kernel.perf_event_max_stack"] == stack
    attachments = {each["name"] for each in report["features"] if each["group"] == "attachments"}
    assert attachments == {f"attaching by {kind}" for kind in KINDS}
    machine = {each["name"]: each["value"] for each in report["machine"]}
    online = Path("/sys/devices/system/cpu/online").read_text().strip()
    assert machine["CPUs online"] == online


@pytest.mark.needs("bpf", "perf_event")
def test_what_it_says_would_run_runs() -> None:
    result = run("doctor", "--all")
    assert re.search(r"^  profile +would run$", result.stdout, re.MULTILINE)
    assert run("profile", "0.1").returncode == 0


@pytest.mark.needs("setpriv", "mount_namespace")
def test_an_ordinary_user_gets_an_answer_too() -> None:
    result = run("doctor", "--all", prefix=as_user("ordinary"))
    assert (result.returncode, result.stderr) == (1, "")
    assert "CAP_BPF           no" in result.stdout
    assert "this process lacks CAP_BPF and CAP_PERFMON" in result.stdout
    disabled = Path("/proc/sys/kernel/unprivileged_bpf_disabled").read_text() != "0\n"
    assert ("does not let this process ask" in result.stdout) == disabled
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    if any(fields[2] == "tracefs" for fields in mounts):
        assert "which this user cannot enter" in result.stdout
    assert "EACCES" not in result.stdout.partition("THIS MACHINE")[0]
    said = dict(
        re.findall(r"^  (\w+) +(.*)$", result.stdout.partition("COMMANDS")[2], re.MULTILINE)
    )
    assert {name for name in COMMANDS if said[name] == "would run"} == set()
    assert {said[name] for name in OFFLINE} == {"would run"}
