"""The doctor's report as text: golden."""

from __future__ import annotations

import json

from purebpf.tools.doctor.model import Answer, Command, Fact, Report
from purebpf.tools.doctor.render import document, lines

REPORT = Report(
    kernel="Linux 6.1.0 x86_64",
    user=(Fact("uid", "0"), Fact("CAP_BPF", "yes", "maps and programs")),
    settings=(Fact("net.core.bpf_jit_enable", "1", "1: the JIT compiles programs"),),
    machine=(Fact("bpffs", "not mounted", "needed to pin only"),),
    asked=True,
    features=(
        Answer("map types", "map type HASH", supported=True, reason="the kernel accepted it"),
        Answer("map types", "map type ARENA", supported=False, reason="EINVAL"),
    ),
    commands=(Command("inspect", ()), Command("profile", ("no BPF", "run it as root"))),
)

TEXT = """\
Linux 6.1.0 x86_64

THIS PROCESS
  uid      0
  CAP_BPF  yes (maps and programs)

SETTINGS
  net.core.bpf_jit_enable  1 (1: the JIT compiles programs)

THIS MACHINE
  bpffs  not mounted (needed to pin only)

FEATURES
  map types: 1 of 2
    no  map type ARENA: EINVAL

COMMANDS
  inspect  would run
  profile  no BPF
           run it as root
"""


def test_the_text_has_the_machine_its_features_and_commands() -> None:
    assert "".join(lines(REPORT)) == TEXT


def test_everything_also_lists_what_works() -> None:
    assert "    yes map type HASH: the kernel accepted it\n" in lines(REPORT, everything=True)


def test_nothing_could_be_asked() -> None:
    text = "".join(lines(REPORT._replace(asked=False)))
    assert "the kernel does not let this process ask" in text
    assert "ARENA" not in text


def test_json_has_what_is_in_the_way_of_each_command() -> None:
    assert json.loads(document(REPORT))["commands"][1] == {
        "name": "profile",
        "obstacles": ["no BPF", "run it as root"],
    }
