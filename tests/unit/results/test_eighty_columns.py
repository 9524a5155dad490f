"""What commands print by default fits 80 columns, whatever names and numbers it has."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from purebpf.cli import command
from purebpf.cli.loss import say_each, words_of_profile
from purebpf.findings.facts import Facts
from purebpf.findings.finding import Finding
from purebpf.results import Cause, Labels, Loss, Marks, Profile
from purebpf.results.formats import answer
from purebpf.results.model.width import display_width
from purebpf.results.shape.histogram import BUCKETS, lines
from purebpf.tools.doctor.model import Answer, Command, Fact, Report
from purebpf.tools.doctor.render import lines as doctor_lines
from purebpf.tools.top.render import render
from purebpf.tools.triage.render import lines as triage_lines
from tests.support.builders.profiles import HOSTILE, kernel, user

WIDE = "\u6f22\u5b57" * 40
NAMES = (
    *HOSTILE,
    WIDE,
    f"ns::{'a' * 90}<{'b' * 90}>::operator()(unsigned long) const",
    "e\u0301" * 90,
)
GREAT = 1 << 62


def hostile(unit: str = "samples") -> Profile:
    about = {"elapsed_s": 1e-3, "frequency_hz": 1, "cpus": [0]}
    profile = Profile("x", unit=unit, about=about)
    for number, name in enumerate(NAMES):
        labels = Labels(name, 4194304 + number, 4194304, cgroup=name, state="D", process=name)
        stack = tuple(user(name, module=f"/{name}") for name in NAMES)
        marks = Marks(times=GREAT)
        profile.add(stack[number:], (kernel(name),), GREAT, labels, marks=marks)
    return profile


def widest(text: Iterable[str]) -> int:
    return max(display_width(line) for line in "".join(text).splitlines())


@pytest.mark.parametrize("by", ["function", "module", "comm", "process", "thread", "cgroup"])
def test_top(by: str) -> None:
    assert widest(render(hostile(), by=by, lines=50, heading="14:03:12")) <= 80


def test_profile() -> None:
    assert widest(answer.pieces(hostile(), cpus=1e-15)) <= 80
    assert widest(answer.functions(hostile(), 5, cpus=1e-15)) <= 80


@pytest.mark.parametrize("name", NAMES)
def test_triage(name: str) -> None:
    text = f"uses {GREAT} CPUs: {name}"
    finding = Finding("cpu", name[:15], (1 << 22,), 1e4, text, (name,), ("top",))
    findings = [finding, finding._replace(is_busy=True)]
    assert widest(triage_lines(Facts(10.0, 1 << 13), findings)) <= 80


@pytest.mark.parametrize("bucket", [0, 30, 150, BUCKETS - 1])
def test_histograms(bucket: int) -> None:
    buckets = [0] * BUCKETS
    buckets[bucket], buckets[3] = GREAT, 1
    assert widest(lines(buckets, "nsecs")) <= 80


def test_doctor() -> None:
    long = "a setting that needs many words to say what it does " * 4
    facts = (Fact("kernel.unprivileged_bpf_disabled", "2", long),)
    answers = (Answer("map types", "map type ARENA", supported=False, reason=long),)
    commands = (Command("profile", (long, long)),)
    report = Report("Linux", facts, facts, facts, asked=True, features=answers, commands=commands)
    assert widest(doctor_lines(report, everything=True)) <= 80


def test_the_last_lines(capsys: pytest.CaptureFixture[str]) -> None:
    profile = hostile()
    what = f"{GREAT} stacks (table full: --stack-storage-size {GREAT}) " * 3
    profile.loss = Loss(GREAT, 0, 0, (Cause("map_full", GREAT, what),))
    profile.hints = [what]
    say_each(words_of_profile(profile))
    command.note(f"purebpf profile: {what}")
    assert widest(capsys.readouterr().err) <= 80
