"""Answers as tables of a page. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape

from purebpf.services.fleet.answers import FramePlace, Functions, Host
from purebpf.services.fleet.coverage import Coverage
from purebpf.services.fleet.regressions import Change, Comparison
from purebpf.services.fleet.web.fields import Asked
from purebpf.services.fleet.web.layout import text
from purebpf.symbols.short_names import shorten

__all__ = ["changes_tables", "coverage_line", "functions_table", "hosts_table"]


def functions_table(functions: Functions, range_us: int) -> str:
    """Functions by their own time: percent of all, and CPUs."""
    if not functions.rows:
        return ""
    whole = functions.value or 1
    rows = "".join(
        f'<tr><td class="n">{100 * own / whole:.2f} %</td>'
        f'<td class="n">{100 * total / whole:.2f} %</td>'
        f'<td class="n">{own / 1000 / range_us:.3f}</td>'
        f'<td class="name" style="--part:{100 * own / whole:.1f}%">{_name(place)}</td></tr>'
        for place, own, total in functions.rows
    )
    others = functions.number - len(functions.rows)
    more = f'<p class="soft">and {others:,} more functions</p>' if others else ""
    return _table("functions", (">self", ">total", ">CPUs", "function"), rows) + more


def hosts_table(hosts: Sequence[Host], range_us: int, asked: Asked, most: int) -> str:
    """Hosts, the busiest first: a link asks for one."""
    rows = "".join(
        f'<tr><td class="n">{host.value / 1000 / range_us:.3f}</td>'
        f'<td class="n">{host.windows}</td><td class="n">{_minute(host.last_us)}</td>'
        f'<td class="name"><a href="{escape(asked.address("/", host=host.host))}">'
        f"{text(host.host)}</a></td></tr>"
        for host in hosts[:most]
    )
    more = f'<p class="soft">and {len(hosts) - most:,} more hosts</p>' if len(hosts) > most else ""
    return _table("hosts", (">CPUs", ">windows", ">last", "host"), rows) + more


def changes_tables(comparison: Comparison, most: int) -> str:
    """Yield growing and shrinking functions, the surest large changes first."""
    parts = []
    for verb, changes in (("grew", comparison.grew), ("shrank", comparison.shrank)):
        rows = "".join(_change(change) for change in changes[:most])
        heads = (">before", ">after", ">points", ">by", "function")
        count = f"{len(changes)} function{'s' if len(changes) != 1 else ''} {verb}"
        parts.append(_table(count, heads, rows) if rows else f"<h2>{count}</h2>")
    unchanged = comparison.functions - len(comparison.grew) - len(comparison.shrank)
    cluster = "windows" if comparison.by_window else "hosts"
    before, after = comparison.clusters
    parts.append(
        f'<p class="soft">{unchanged:,} functions did not change more than chance explains, judged '
        f"by how {before} and {after} {cluster} differ; the interval holds the change 95 times of "
        "100.</p>"
    )
    return "".join(parts)


def coverage_line(coverage: Coverage) -> str:
    """Return the basis of the answers."""
    lost = "" if coverage.is_whole else " lost"
    return f'<p class="coverage{lost}" role="status">{text(coverage.text())}</p>'


def _change(change: Change) -> str:
    by = f"{100 * (change.after / change.before - 1):+.1f} %" if change.before else "new"
    return (
        f'<tr><td class="n">{100 * change.before:.2f} %</td>'
        f'<td class="n">{100 * change.after:.2f} %</td>'
        f'<td class="n">{100 * change.size:+.2f} ± {100 * change.margin:.2f}</td>'
        f'<td class="n">{by}</td><td class="name">{_name(change.place)}</td></tr>'
    )


def _name(place: FramePlace) -> str:
    module = f" <small>{text(place.module)}</small>" if place.module and place.function else ""
    full, short = place.name, shorten(place.name)
    title = f' title="{text(full)}"' if full != short else ""
    return f"<span{title}>{text(short)}</span>{module}"


def _minute(us: int) -> str:
    return f"{datetime.fromtimestamp(us / 1e6, UTC):%m-%d %H:%M}"


def _table(title: str, heads: Iterable[str], rows: str) -> str:
    cells = "".join(
        f'<th scope="col"{" class=n" if head[0] == ">" else ""}>{head.lstrip(">")}</th>'
        for head in heads
    )
    return (
        f'<h2>{title}</h2><div class="wide"><table><thead><tr>{cells}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )
