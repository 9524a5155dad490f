"""The page that lists the profiles of a folder: a time line, and a table to choose from."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from html import escape
from urllib.parse import urlencode

from purebpf.results.formats.html import list_style
from purebpf.results.model.spelling import printable
from purebpf.tools.view.folder import Saved, Summary

__all__ = ["list_page"]

_WIDTH, _HEIGHT = 1000, 90
_HEADS = "".join(
    f'<th scope="col" class="{of}">{name}</th>'
    for name, of in (
        *(("before", ""), ("after", ""), ("profile", ""), ("started", "")),
        *(("seconds", "n"), ("counted", "n"), ("measured", "")),
    )
)


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
<title>{title}</title><style>{list_style()}</style></head><body>
<header><h1>{title}</h1><span class="soft" role="status">{status}</span></header><main>
{f'<p class="problem">{escape(note)}</p>' if note else ""}{_time_line(read, token)}
<nav><button form="compare" type="submit">Compare before and after</button></nav>
<form id="compare" action="/compare" hidden>
<input type="hidden" name="token" value="{escape(token)}"></form>
<div class="wide"><table class="files"><thead><tr>{_HEADS}</tr></thead>
<tbody>{rows}</tbody></table></div></main></body></html>
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
        f'<td><input type="radio" form="compare" name="{side}" value="{value}" '
        f'aria-label="{side}: {name}"></td>'
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
        f'<tr>{cells}<td>{_date(summary.started_s)}</td><td class="n">{summary.elapsed_s:.1f}'
        f'</td><td class="n">{_amount(summary)}</td>'
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
        height = max(1.0, rate / most * (_HEIGHT - 6))
        left = (summary.started_s - first) / whole * _WIDTH
        width = max(3.0, summary.elapsed_s / whole * _WIDTH - 1)
        text = escape(f"{printable(summary.saved.name)}, {_date(summary.started_s)}")
        bars.append(
            f'<a href="{_link(summary.saved.name, token)}" aria-label="{text}"><rect x="{left:.1f}"'
            f' y="{_HEIGHT - height:.1f}" width="{width:.1f}" height="{height:.1f}">'
            f"<title>{text}: {_amount(summary)}</title></rect></a>"
        )
    ends = f'<div class="ends"><span>{_date(first)}</span><span>{_date(first + whole)}</span></div>'
    return (
        f'<svg class="bars" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="group" '
        f'aria-label="profiles over time">{"".join(bars)}</svg>{ends}'
    )
