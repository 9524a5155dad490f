"""What the page says about a run, in words."""

from __future__ import annotations

import pytest

from purebpf.results import Labels, Profile
from purebpf.results.shape import page_facts
from purebpf.results.shape.page_facts import describe
from tests.support.builders.profiles import MAIN


def test_the_first_line_has_length_rate_host_and_sum() -> None:
    about = {"elapsed_s": 12.01, "frequency_hz": 199, "host": "web\x1b1", "started_s": 1795359601.5}
    profile = Profile(about=about)
    profile.add((MAIN,), (), 4755, Labels("app"))
    found = describe(profile)
    assert found["brief"] == ["12.0 s", "199 Hz", "web?1", "4,755 samples"]
    assert found["started_s"] == 1795359601.5


def test_time_is_in_seconds() -> None:
    profile = Profile(unit="ns")
    profile.add((MAIN,), (), 1_500_000_000, Labels("app"))
    assert describe(profile)["brief"] == ["1.5 s of thread time"]


def test_names_are_words_and_zeros_are_left_out() -> None:
    about = {"counted": 12345, "idle": 0, "cpus": [0, 1], "started_ns": 5, "some_key": "x"}
    assert describe(Profile(about=about))["rows"] == [
        ["counted in the kernel", "12,345"],
        ["CPUs", "0 1"],
        ["some key", "x"],
    ]


def _sampled(*owners: tuple[str, int], **about: object) -> Profile:
    facts = {"event": "cpu-clock", "elapsed_s": 6.04}
    made = Profile("Sampling at 49 Hertz of all threads... Hit Ctrl-C to end.", about=facts | about)
    for name, pid in owners:
        made.add((), (), 1, Labels(name, pid))
    return made


def test_pages_of_waits_are_titled_alike() -> None:
    made = _sampled(("gunicorn", 28461))
    made.title = "Tracing off-CPU time (us) of PID [28461] by user stack for 6 secs."
    made.about["event"] = ""
    assert page_facts.title(made) == "gunicorn (28461) - off-CPU - 6.04 s"
    made.title = "Tracing the wall clock (us) of PID [28461], sampling at 99 Hertz for 6 secs."
    made.about["event"] = "cpu-clock"
    assert page_facts.title(made) == "gunicorn (28461) - wall clock - 6.04 s"


@pytest.mark.parametrize(
    ("profile", "title"),
    [
        (_sampled(("gunicorn", 28461)), "gunicorn (28461) - CPU - 6.04 s"),
        (_sampled(("gunicorn", 7), ("gunicorn", 8)), "gunicorn (2 PIDs) - CPU - 6.04 s"),
        (_sampled(("gunicorn", 7), ("nginx", 9)), "2 processes - CPU - 6.04 s"),
        (_sampled(("sh", 7), command=["/usr/bin/make", "test"]), "make - CPU - 6.04 s"),
        (_sampled(("sh", 7), event="page-faults"), "Sampling at 49 Hertz of all threads"),
        (_sampled(("sh", 7), elapsed_s=None), "Sampling at 49 Hertz of all threads"),
    ],
)
def test_a_page_is_titled_by_who_ran_and_for_how_long(profile: Profile, title: str) -> None:
    assert page_facts.title(profile) == title
