"""The text of profile: names of Python functions, and machines that run nothing."""

from __future__ import annotations

import pytest

from purebpf.cli.destination import ResultOptions
from purebpf.results import Labels, Loss, Profile
from purebpf.symbols.frame import Address, Frame
from purebpf.symbols.script_names import spell_script
from purebpf.tools.profile.render import render, sample_lines

PACKAGES = "/srv/shop/venv/lib/python3.11/site-packages"


def python(name: str, file: str, line: int = 0) -> Frame:
    return Frame(name, 0, file, Address(0), "python", file=file if line else "", line=line)


def sampled(*weights: int, about: dict[str, object] | None = None) -> Profile:
    """Samples of two seconds on four CPUs, in one function at several lines."""
    facts = {"frequency_hz": 49, "elapsed_s": 2.0, "cpus": [0, 1, 2, 3], "event": "cpu-clock"}
    profile = Profile("", about=facts | {"counted": sum(weights), **(about or {})})
    for line, weight in enumerate(weights, 31):
        user = (
            python("price", "/srv/shop/app.py", line),
            python("run", f"{PACKAGES}/flask/app.py", 902),
        )
        profile.add(user, (), weight, Labels("shop", 7))
    return profile


def text(profile: Profile, **options: bool) -> str:
    return "".join(map(str, render(profile, ResultOptions(**options), "text")))


def test_python_functions_have_their_package_and_heaviest_line() -> None:
    shown = text(sampled(20, 200, 30))
    assert "  price (app.py:32)\n" in shown
    assert "  run (flask/app.py:902)\n" in shown


@pytest.mark.parametrize(
    ("path", "spelled"),
    [
        (f"{PACKAGES}/sqlalchemy/engine/base.py", "sqlalchemy/engine/base.py"),
        ("/usr/lib/python3/dist-packages/yaml/reader.py", "yaml/reader.py"),
        ("/usr/lib/python3.11/json/encoder.py", "json/encoder.py"),
        ("/usr/lib/python3.11/threading.py", "threading.py"),
        ("/srv/lib/python/app.py", "app.py"),
        ("app.py", "app.py"),
        ("<frozen runpy>", "<frozen runpy>"),
    ],
)
def test_a_file_of_a_package_is_told_from_an_own_one(path: str, spelled: str) -> None:
    assert spell_script(path) == spelled


def test_a_machine_that_waits_has_a_sentence_instead_of_a_table() -> None:
    assert text(sampled(3, 4)) == (
        "the machine is idle: 7 samples, 0.07 of 4 CPUs"
        " (the table: --all; threads that wait: purebpf offcpu)\n"
    )
    assert "price" in text(sampled(3, 4), all_stacks=True)


@pytest.mark.parametrize(
    "profile",
    [
        sampled(51),
        sampled(20),
        sampled(3, about={"filtered": 90}),
        sampled(3, about={"cpus": None}),
    ],
    ids=["enough samples", "a busy moment", "a target", "no rate of the machine"],
)
def test_other_profiles_keep_their_table(profile: Profile) -> None:
    if profile.total == 20:
        profile.about["elapsed_s"] = 0.4
    assert "price" in text(profile)


def test_samples_of_purebpf_itself_are_in_the_line_of_samples() -> None:
    profile = sampled(9, about={"counted": 58, "own": 49})
    profile.loss = Loss(seen=60, expected=392)
    (line,) = sample_lines(profile, "")
    assert line == (
        "60 of 392 samples, 9 not idle (0.09 CPUs), 49 of purebpf itself (0.50 CPUs); "
        "sampled by the CPU clock"
    )
