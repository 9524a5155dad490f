"""Metrics: names and values as Prometheus reads them, few series, rules that fire."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from purebpf.results.formats.otlp import Entry, Sample, Series
from purebpf.results.shape.histogram import BUCKETS
from purebpf.services.agent.config import ConfigError, parse_config
from purebpf.services.agent.metrics.counts import Counts
from purebpf.services.agent.metrics.families import Families, Pushes, State

PERIOD_NS = 52_631_579
RULES = Path(__file__).parents[4] / "docs/prometheus"
STATE = State(
    19, 1, 4096, 2, 1, [Pushes("hub", 7, 3, 1, 1_795_359_600.5), Pushes("new", 0, 0, 0, 0)]
)


def services(values: dict[str, int]) -> list[Series]:
    stack = (Entry("f", "m", "user"),)
    return [Series((("service.name", n),), {Sample("a", stack): v}) for n, v in values.items()]


def exposed(counts: Counts, distributions: dict[str, tuple[int, list[int]]] | None = None) -> str:
    registry = CollectorRegistry()
    registry.register(Families(counts, lambda: STATE, lambda: distributions or {}))  # type: ignore[arg-type]
    return generate_latest(registry).decode()


def samples(text: str) -> dict[tuple[str, ...], float]:
    """Values by name and label values, these in the order of the labels' names."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_windows_add_up() -> None:
    counts = Counts()
    facts = {"purebpf.expected": 20, "purebpf.seen": 19, "purebpf.lost.map_full": 1}
    for _ in range(3):
        counts.add_window("cpu", PERIOD_NS, services({"shop": 7, "web": 2}), facts, {})
    counts.add_window("offcpu", 0, services({"shop": 1_500_000_000}), {}, {})
    counts.add_window("runqueue", 0, services({"shop": 250_000_000}), {}, {})
    counts.add_cost(2_000_000_000, 500_000_000)
    found = samples(exposed(counts))
    assert found["purebpf_cpu_seconds_total", "shop"] == pytest.approx(21 * PERIOD_NS / 1e9)
    assert found["purebpf_offcpu_seconds_total", "shop", "blocked"] == 1.5
    assert found["purebpf_offcpu_seconds_total", "shop", "run_queue"] == 0.25
    assert found["purebpf_agent_samples_expected_total",] == 60
    assert found["purebpf_agent_lost_total", "map_full"] == 3
    assert found["purebpf_agent_windows_total",] == 3
    assert found["purebpf_agent_cpu_seconds_total",] == 2
    assert found["purebpf_agent_pushes_total", "refused", "hub"] == 1
    assert found["purebpf_agent_last_push_timestamp_seconds", "hub"] == 1_795_359_600.5
    assert ("purebpf_agent_last_push_timestamp_seconds", "new") not in found
    assert found["purebpf_agent_dropped_windows_total",] == 2


def test_histograms_are_cumulative_and_exact() -> None:
    buckets = [0] * BUCKETS
    buckets[0] = 5  # below 1 us
    buckets[3] = 7  # 3 us
    buckets[4] = 11  # 4 us
    buckets[-1] = 13
    found = samples(exposed(Counts(), {"run_queue": (3_000_000_000, buckets)}))
    name = "purebpf_runqueue_wait_seconds"
    assert found[f"{name}_bucket", "1e-06"] == 5
    assert found[f"{name}_bucket", "2e-06"] == 5
    assert found[f"{name}_bucket", "4e-06"] == 12
    assert found[f"{name}_bucket", "8e-06"] == 23
    assert found[f"{name}_bucket", "134.217728"] == 23
    assert found[f"{name}_bucket", "+Inf"] == found[f"{name}_count",] == 36
    assert found[f"{name}_sum",] == 3
    assert sum(key[0] == f"{name}_bucket" for key in found) == 29


def test_a_million_services_are_few_series() -> None:
    counts = Counts()
    counts.add_window(
        "cpu",
        1,
        services({f"s{n}": 1 for n in range(3000)}),
        {},
        dict.fromkeys((f"s{n}" for n in range(3000)), 0),
    )
    counts.add_calls({f"call{n}": 3000 - n for n in range(400)}, {})
    counts.add_calls({"late": 5}, {("late", "EPERM"): 2})
    text = exposed(counts)
    found = samples(text)
    assert len(found) < 2000
    assert found["purebpf_cpu_seconds_total", "other"] == pytest.approx(2500e-9)
    assert found["purebpf_syscalls_total", "call0"] == 3000
    assert found["purebpf_syscall_errors_total", "EPERM", "other"] == 2
    assert found["purebpf_agent_lumped_total",] == 2500 + 200 + 2


def test_names_are_escaped() -> None:
    counts = Counts()
    counts.add_window("cpu", 1, services({'a"b\\c\nd': 10**9}), {}, {})
    assert samples(exposed(counts))["purebpf_cpu_seconds_total", 'a"b\\c\nd'] == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("listen = 'here'", "expected ADDR:PORT"),
        ("textfile = 'x.prom'", "is not absolute"),
        ("textfile = '/x/y.txt'", "node_exporter reads names with"),
        ("certificate = '/c'", "both, or neither"),
        ("port = 1", "unknown key"),
    ],
)
def test_mistakes_of_the_section_are_named(text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        parse_config(f"[metrics]\n{text}\n")


def everything() -> str:
    """What an agent exposes that counts all there is."""
    counts = Counts()
    counts.add_window("cpu", PERIOD_NS, services({"shop": 7}), {"purebpf.lost.map_full": 1}, {})
    counts.add_window("offcpu", 0, services({"shop": 7}), {}, {})
    counts.add_calls({"read": 3}, {("read", "EAGAIN"): 1})
    return exposed(counts, {name: (0, [0] * BUCKETS) for name in ("run_queue", "on_cpu")})


def dashboard_expressions() -> list[str]:
    board = json.loads((RULES / "dashboard.json").read_text())
    return [target["expr"] for panel in board["panels"] for target in panel["targets"]]


def test_the_dashboard_asks_for_what_is_exposed() -> None:
    asked = {name for text in dashboard_expressions() for name in re.findall(r"purebpf_\w+", text)}
    known = {name for name, *_ in samples(everything())}
    assert asked
    assert asked - known == set()


@pytest.mark.needs("promtool")
def test_the_dashboard_pleases_promtool(tmp_path: Path) -> None:
    rules = [
        {"record": f"panel:{number}", "expr": text.replace("$__rate_interval", "5m")}
        for number, text in enumerate(dashboard_expressions())
    ]
    path = tmp_path / "rules.json"  # YAML is a superset
    path.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    subprocess.run(["promtool", "check", "rules", str(path)], check=True, capture_output=True)


@pytest.mark.needs("promtool")
def test_what_is_exposed_and_the_rules_please_promtool() -> None:
    text = everything()
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=text, text=True, capture_output=True, check=False
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
    for words in (("check", "rules", "alerts.yml"), ("test", "rules", "alerts_test.yml")):
        subprocess.run(["promtool", *words], cwd=RULES, check=True, capture_output=True)


def test_one_user_does_not_take_the_names_of_the_others() -> None:
    counts = Counts()
    names = [f"m{number}" for number in range(3000)]
    users = {**dict.fromkeys(names, 1001), "shop": 1000, "nginx": 0}
    counts.add_window("cpu", 1, services(dict.fromkeys(names, 1)), {}, users)
    counts.add_window("cpu", 1, services({"shop": 5, "nginx": 7}), {}, users)
    cpu = counts.totals().cpu
    assert (cpu["shop"], cpu["nginx"], cpu["other"]) == (5, 7, 2900)
    assert len(cpu) == 103
