"""Answers as text. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from purebpf.results.model.spelling import printable
from purebpf.results.model.units import in_unit
from purebpf.services.fleet.answers import Functions, Host, Moment
from purebpf.services.fleet.regressions import Comparison
from purebpf.services.fleet.steps import Steps
from purebpf.symbols.short_names import shorten

__all__ = ["render_changes", "render_functions", "render_hosts", "render_rows", "render_timeline"]

_BARS = " ▁▂▃▄▅▆▇█"
_WIDTH = 80


def render_functions(functions: Functions, range_us: int) -> Iterator[str]:
    """A table, the heaviest first: percent of all, and CPUs that were busy with it on average."""
    total = functions.value
    if not total:
        yield "no samples\n"
        return
    yield f"{'self':>7} {'total':>7} {'CPUs':>8}  function\n"
    for place, own, whole in functions.rows:
        cpus = own / 1000 / range_us
        module = f" [{place.module}]" if place.module and place.function else ""
        name = printable(shorten(place.name)) + printable(module)
        line = f"{100 * own / total:6.2f}% {100 * whole / total:6.2f}% {cpus:8.3f}  {name}"
        yield line[:_WIDTH] + "\n"
    others = functions.number - len(functions.rows)
    if others:
        rest = total - sum(own for _, own, _ in functions.rows)
        yield f"{100 * rest / total:6.2f}% {'':16}  in {others} more functions\n"


def render_changes(comparison: Comparison, rows: int) -> Iterator[str]:
    """Yield growing functions, then shrinking ones: percent of each side, and points with their
    95 % interval.
    """
    for verb, changes in (("grew", comparison.grew), ("shrank", comparison.shrank)):
        if changes:
            yield f"{'before':>7} {'after':>7} {'points':>7} {'95 %':>7} {verb:>7}  function\n"
        for change in changes[:rows]:
            place, before, after, _ = change
            module = f" [{place.module}]" if place.module and place.function else ""
            size, margin = 100 * change.size, 100 * change.margin
            part = f"{100 * (after / before - 1):+6.1f}%" if before else "    new"
            name = printable(shorten(place.name)) + printable(module)
            shares = f"{100 * before:6.2f}% {100 * after:6.2f}%"
            line = f"{shares} {size:+7.2f} +-{margin:5.2f} {part}  {name}"
            yield line[:_WIDTH] + "\n"
        if len(changes) > rows:
            yield f"{'':41}and {len(changes) - rows} more\n"
        if changes:
            yield "\n"
    unchanged = comparison.functions - len(comparison.grew) - len(comparison.shrank)
    cluster = "windows" if comparison.by_window else "hosts"
    before_n, after_n = comparison.clusters
    yield f"{unchanged} functions did not change more than chance explains,\n"
    yield f"judged by how {before_n} and {after_n} {cluster} differ\n"


def render_hosts(hosts: Sequence[Host], range_us: int, rows: int) -> Iterator[str]:
    """A table of hosts, the busiest first."""
    yield f"{'CPUs':>8} {'windows':>8} {'last (UTC)':<16} {'clock':>8} {'agent':>8}  host\n"
    for host in hosts[:rows]:
        last = f"{datetime.fromtimestamp(host.last_us / 1e6, UTC):%Y-%m-%d %H:%M}"
        clock = f"{host.clock_offset_ns / 1e9:+.1f} s"
        line = (
            f"{host.value / 1000 / range_us:8.3f} {host.windows:8} {last:<16} {clock:>8} "
            f"{in_unit(host.agent_cpu_ns):>8}  {printable(host.host)}"
        )
        yield line[:_WIDTH] + "\n"
    if len(hosts) > rows:
        yield f"{'':8} and {len(hosts) - rows} more hosts\n"


def render_timeline(moments: Sequence[Moment], steps: Steps, rows: int) -> Iterator[str]:
    """A row of bars for each service, the busiest first; the highest of each is a full block."""
    by_service: dict[str, list[int]] = defaultdict(lambda: [0] * steps.number)
    for at_us, service, value in moments:
        by_service[service][steps.column(at_us)] += value
    length_us = steps.length_us
    yield f"{'CPUs':>8} {'most':>8}  service, {in_unit(length_us * 1000)} a column\n"
    ordered = sorted(by_service.items(), key=lambda item: -sum(item[1]))
    for service, values in ordered[:rows]:
        most = max(values)
        bars = "".join(_BARS[-(-8 * value // most) if most else 0] for value in values)
        mean, peak = sum(values) / steps.number / 1000 / length_us, most / 1000 / length_us
        yield (
            f"{mean:8.3f} {peak:8.3f}  {bars} {printable(service or '[no service]')}"[:_WIDTH]
            + "\n"
        )
    if len(ordered) > rows:
        yield f"{'':17}  and {len(ordered) - rows} more services\n"


def render_rows(names: Sequence[str], answer: Sequence[Sequence[object]]) -> Iterator[str]:
    """Rows of a statement, tab-separated, with a head."""
    yield "\t".join(names) + "\n"
    for row in answer:
        yield "\t".join(printable("" if value is None else str(value)) for value in row) + "\n"
