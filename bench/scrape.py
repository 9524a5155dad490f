"""How long a scrape of the agent's metrics takes, with as many services and calls as are shown.

    .venv/bin/python bench/scrape.py [--times 51]

Serves the metrics of 3,000 services and 400 system calls on the loopback, as the agent does, and
scrapes them as text and as packed OpenMetrics, one after the other. Prints medians of the time and
of the CPU time of both sides, and the bar: 50 ms, of the latter. Exit status 1 when it is missed.
Needs root and prometheus_client.
"""

from __future__ import annotations

import argparse
import gzip
import statistics
import sys
import time
from urllib.request import Request, urlopen

from purebpf.results.formats.otlp import Entry, Sample, Series
from purebpf.services.agent.config import Metrics
from purebpf.services.agent.metrics.exporter import Exporter
from purebpf.services.agent.metrics.families import State

_SERVICES, _CALLS, _MOST_S = 3000, 400, 0.05
_FORMATS: dict[str, dict[str, str]] = {
    "text": {},
    "packed OpenMetrics": {
        "Accept": "application/openmetrics-text; version=1.0.0",
        "Accept-Encoding": "gzip",
    },
}


def _fill(exporter: Exporter) -> None:
    """More than the agent shows, of everything."""
    names = [f"service-{number}" for number in range(_SERVICES)]
    users = dict.fromkeys(names, 0)
    stack = (Entry("f", "m", "user"),)
    for kind in ("cpu", "offcpu", "runqueue"):
        series = [
            Series((("service.name", name),), {Sample("a", stack): 1_000_000}) for name in names
        ]
        exporter.counts.add_window(kind, 1, series, {}, users)
    calls = {f"call{number}": 1000 + number for number in range(_CALLS)}
    exporter.counts.add_calls(calls, {(name, "ENOENT"): 5 for name in calls})


def main() -> int:
    """Scrape."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--times", type=int, default=51, help="of each format (default: 51)")
    options = parser.parse_args()
    wanted, state = Metrics(listen="127.0.0.1:0"), State(19, 1, 0, 0, 0, ())
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in _FORMATS}
    size: dict[str, int] = {}
    with Exporter(wanted, 60, lambda: state) as exporter:
        _fill(exporter)
        for _ in range(options.times):
            for name, headers in _FORMATS.items():
                began, cpu = time.perf_counter(), time.process_time()
                address = f"http://127.0.0.1:{exporter.port}/metrics"
                with urlopen(Request(address, headers=headers)) as answer:
                    content = answer.read()
                took[name].append((time.perf_counter() - began, time.process_time() - cpu))
                size[name] = len(content)
                if headers:
                    content = gzip.decompress(content)
                series = sum(not line.startswith(b"#") for line in content.splitlines())
    good = True
    for name, pairs in took.items():
        wall, cpu = (statistics.median(values) for values in zip(*pairs, strict=True))
        good &= cpu <= _MOST_S  # the time of a busy machine is that of others
        print(f"{name}: {1000 * wall:.1f} ms, CPU {1000 * cpu:.1f} ms, {size[name]} bytes")
    print(f"{series} series; bar: {1000 * _MOST_S:.0f} ms")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
