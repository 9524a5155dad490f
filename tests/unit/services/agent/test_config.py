"""The configuration: defaults, and every mistake named."""

from __future__ import annotations

import pytest

from purebpf.services.agent.config import Config, ConfigError, parse_config
from purebpf.services.agent.describe import describe

WHOLE = """
[agent]
state = "/srv/state"
window_s = 30
budget = 0.01
[cpu]
frequency = 49
probability = 0.5
[wait]
enabled = true
[spool]
max_mb = 64
[[sink]]
type = "otlp"
url = "https://collector:4318"
[[sink]]
type = "pyroscope"
url = "http://pyroscope:4040/base"
tenant = "a"
[[service]]
name = 'shop-\\1'
cgroup = "shop-([a-z]+)"
[labels]
env = "prod"
"""


def test_an_empty_file_is_the_defaults() -> None:
    assert parse_config("") == Config()
    assert Config().cpu.frequency == 19
    assert not Config().wait.enabled
    assert Config().wait.frequency == 1


def test_every_section_is_read() -> None:
    config = parse_config(WHOLE)
    assert config.agent.window_s == 30
    assert config.cpu.frequency == 49
    assert config.wait.enabled
    assert config.wait.min_us == 1000
    assert [sink.name for sink in config.sinks] == ["otlp", "pyroscope2"]
    assert config.sinks[1].max_age_s == 3600, "Pyroscope refuses what is older"
    assert config.services[0].name == r"shop-\1"
    assert config.labels == (("env", "prod"),)


def test_what_it_would_do_is_said() -> None:
    text = describe(parse_config(WHOLE))
    assert "49 Hz, in 50 % of the windows" in text
    assert "waits: off-CPU and run queue, at most 1 looks a second" in text
    traced = describe(parse_config(WHOLE.replace("[spool]", "method = 'trace'\n[spool]")))
    assert "waits: off-CPU and run queue of each switch, from 1000 us on" in traced
    assert "1 % of a CPU" in text
    assert "sink pyroscope2: pyroscope http://pyroscope:4040/base" in text
    assert r"service shop-\1: cgroup ~ shop-([a-z]+)" in text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[agent", "is not TOML"),
        ("[sampling]", "unknown section 'sampling'"),
        ("[cpu]\nfrequencey = 19", "unknown key in [cpu]: 'frequencey'; similar: frequency"),
        ("[cpu]\nfrequency = '19'", "[cpu] frequency = '19': expected a whole number"),
        ("[cpu]\nfrequency = true", "expected a whole number"),
        ("[cpu]\nfrequency = 5000", "[cpu] frequency = 5000: expected 1 to 999"),
        ("[cpu]\nprobability = 0", "expected 0.001 to 1"),
        ("cpu = 5", "cpu is not a section"),
        ("[sink]\ntype = 'otlp'", "write [[sink]]"),
        ("[[sink]]\ntype = 'kafka'", "type 'kafka'; known: dir, otlp, pyroscope, parca"),
        ("[[sink]]\ntype = 'otlp'\nurl = 'collector:4318'", "is not an HTTP address"),
        ("[[sink]]\ntype = 'dir'\npath = 'here'", "is not absolute"),
        ("[[sink]]\ntype = 'dir'\npath = '/a'\nname = '../b'", "not a name"),
        (
            "[[sink]]\ntype='dir'\npath='/a'\nname='b'\n[[sink]]\ntype='dir'\npath='/a'\nname='b'",
            "two sinks have one name",
        ),
        ("[[sink]]\ntype = 'otlp'\nurl = 'http://[::1'", "is not an HTTP address"),
        ("[[sink]]\ntype = 'otlp'\nurl = 'http://a:99999'", "is not an HTTP address"),
        ("[[sink]]\ntype = 'otlp'\nurl = 'http://a'\ntimeout_s = -1", "timeout_s"),
        ("[[sink]]\ntype = 'otlp'\nurl = 'http://a'\ntimeout_s = nan", "timeout_s"),
        (f"[cpu]\nfrequency = {'9' * 400}", "expected 1 to 999"),
        (f"[agent]\nwindow_s = {'9' * 400}", "window_s is too large"),
        (f"[cpu]\nfrequency = {'9' * 5000}", "is not a configuration"),
        ("labels = 5", "labels is not a section"),
        (f"x = {'[' * 5000}", "is not a configuration"),
        ("[[service]]\nname = 'a'\ncomm = 'a{99999999999}'", "not a pattern"),
        ("[[service]]\nname = 'a'", "needs a name, and cgroup, comm or exe"),
        ("[[service]]\nname = 'a'\ncomm = '('", "not a pattern: '('"),
    ],
)
def test_mistakes_are_named(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "agent.toml")
    assert words in str(caught.value)
    assert "agent.toml" in str(caught.value)


def test_waits_are_looked_at_with_what_the_cpu_samples_know() -> None:
    with pytest.raises(ConfigError, match=r"enable that, or write method = 'trace'"):
        parse_config("[cpu]\nenabled = false\n[wait]\nenabled = true")
    parse_config("[cpu]\nenabled = false\n[wait]\nenabled = true\nmethod = 'trace'")
    with pytest.raises(ConfigError, match=r"\[wait\] method = 'guess'; known: sample, trace"):
        parse_config("[wait]\nmethod = 'guess'")
