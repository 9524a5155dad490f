"""The page that lists the profiles of a folder: a time line, and a table to choose from."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from html import escape
from urllib.parse import urlencode

from purebpf.results.model.spelling import printable
from purebpf.tools.view.folder import Saved, Summary

__all__ = ["list_page"]

_WIDTH, _HEIGHT = 1000, 90
_STYLE = """
:root { color-scheme: light dark; }
body { font: 14px/1.5 system-ui, sans-serif; margin: 16px; max-width: 1200px; }
html { background: light-dark(#fff, #16181d); }
h1 { font-size: 18px; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: 3px 10px; border-bottom: 1px solid #8886; white-space: nowrap; }
td.text { white-space: normal; overflow-wrap: anywhere; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
svg { width: 100%; height: auto; background: #8881; border-radius: 4px; }
svg a:hover rect, svg a:focus rect { fill: #0b57d0; } rect { fill: #d94f30; }
text { font-size: 11px; fill: currentColor; }
a { color: light-dark(#0b57d0, #8ab4ff); }
@media (max-width: 640px) {
  th, td { padding: 3px 4px; } td { white-space: normal; }
  tr > :nth-child(n + 5) { display: none; }
}
.problem, .lost { color: light-dark(#a32a12, #ff9d85); }
"""


def list_page(
    folder: str, files: Sequence[Saved], read: Sequence[Summary], token: str, note: str = ""
) -> str:
    """The page. `read` are the files that were read so far; others are listed by name."""
    by_saved = {summary.saved: summary for summary in read}
    waiting = len(files) - len(by_saved)
    again = '<meta http-equiv="refresh" content="2">' if waiting else ""
    ordered = sorted(files, key=lambda saved: _when(saved, by_saved), reverse=True)
    rows = "".join(_row(saved, by_saved.get(saved), token) for saved in ordered)
    status = f"{len(files)} profiles" + (f", {waiting} still to be read" if waiting else "")
    title = escape(printable(folder))
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">{again}
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{_STYLE}</style></head><body><main>
<h1>{title}</h1><p role="status">{status}. {escape(note)}</p>
{_time_line(read, token)}
<form action="/compare"><input type="hidden" name="token" value="{escape(token)}">
<p><button>Compare the two that are marked</button></p>
<table><thead><tr><th scope="col">before</th><th scope="col">after</th><th scope="col">profile</th>
<th scope="col">started</th><th scope="col">seconds</th><th scope="col">counted</th>
<th scope="col">what it is</th></tr></thead><tbody>{rows}</tbody></table></form>
</main></body></html>
"""


def _when(saved: Saved, by_saved: dict[Saved, Summary]) -> float:
    summary = by_saved.get(saved)
    return summary.started_s if summary else saved.modified_ns / 1e9


def _link(name: str, token: str) -> str:
    return escape(f"/profile?{urlencode({'name': name, 'token': token}, errors='surrogateescape')}")


def _row(saved: Saved, summary: Summary | None, token: str) -> str:
    name = escape(printable(saved.name))
    value = escape(saved.name.encode("utf-8", "replace").decode())
    marks = "".join(
        f'<td><input type="radio" name="{side}" value="{value}" aria-label="{side}: {name}"></td>'
        for side in ("before", "after")
    )
    cells = f'{marks}<td class="text"><a href="{_link(saved.name, token)}">{name}</a></td>'
    if summary is None:
        return f"<tr>{cells}<td></td><td></td><td></td><td>not read yet</td></tr>"
    if summary.problem:
        problem = escape(printable(summary.problem))
        return f'<tr>{cells}<td></td><td></td><td></td><td class="text problem">{problem}</td></tr>'
    lost = "" if summary.is_complete else ' <span class="lost">(incomplete)</span>'
    return (
        f'<tr>{cells}<td>{_date(summary.started_s)}</td><td class="number">{summary.elapsed_s:.1f}'
        f'</td><td class="number">{_amount(summary)}</td>'
        f'<td class="text">{escape(printable(summary.title))}{lost}</td></tr>'
    )


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def _amount(summary: Summary) -> str:
    if summary.unit == "ns":
        return f"{summary.total / 1e9:,.2f} s"
    return f"{summary.total:,} {escape(printable(summary.unit))}"


def _time_line(read: Iterable[Summary], token: str) -> str:
    """A bar for each profile: where it began, and how much it counted a second."""
    readable = [summary for summary in read if not summary.problem and summary.elapsed_s > 0]
    units = {summary.unit for summary in readable}
    if len(readable) < 2 or len(units) != 1:  # heights of other units cannot be compared
        return ""
    first = min(summary.started_s for summary in readable)
    whole = max(summary.started_s + summary.elapsed_s for summary in readable) - first or 1
    most = max(summary.total / summary.elapsed_s for summary in readable) or 1
    bars = []
    for summary in sorted(readable, key=lambda summary: summary.started_s):
        rate = summary.total / summary.elapsed_s
        height = max(1.0, rate / most * (_HEIGHT - 20))
        left = (summary.started_s - first) / whole * _WIDTH
        width = max(3.0, summary.elapsed_s / whole * _WIDTH - 1)
        text = escape(f"{printable(summary.saved.name)}, {_date(summary.started_s)}")
        bars.append(
            f'<a href="{_link(summary.saved.name, token)}" aria-label="{text}"><rect x="{left:.1f}"'
            f' y="{_HEIGHT - 16 - height:.1f}" width="{width:.1f}" height="{height:.1f}">'
            f"<title>{text}: {_amount(summary)}</title></rect></a>"
        )
    ends = (
        f'<text x="2" y="{_HEIGHT - 3}">{_date(first)}</text><text x="{_WIDTH - 2}" '
        f'y="{_HEIGHT - 3}" text-anchor="end">{_date(first + whole)}</text>'
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="group" aria-label="profiles over time">'
        f"{''.join(bars)}{ends}</svg>"
    )
