"""The time line of a range: CPUs by service, in columns. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from html import escape

from purebpf.services.fleet.answers import Moment
from purebpf.services.fleet.steps import Steps
from purebpf.services.fleet.web.fields import Asked, iso
from purebpf.services.fleet.web.layout import text

__all__ = ["MOST_STEPS", "timeline"]

MOST_STEPS = 120
_HEIGHT = 150
_COLOURS = (
    *("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2", "#eeca3b", "#9d755d"),
    "#8a93a3",
)
_OTHERS = "other services"


def timeline(moments: Sequence[Moment], steps: Steps, asked: Asked) -> str:
    """Return a picture, its legend, and its axis; a service links to itself."""
    sums: dict[str, list[int]] = defaultdict(lambda: [0] * steps.number)
    for at_us, service, value in moments:
        sums[service][steps.column(at_us)] += value
    order = sorted(sums, key=lambda service: (-sum(sums[service]), service))
    shown, rest = order[: len(_COLOURS) - 1], order[len(_COLOURS) - 1 :]
    columns = [sums[service] for service in shown]
    if rest:
        columns.append([sum(sums[service][at] for service in rest) for at in range(steps.number)])
    heights = [sum(column[at] for column in columns) for at in range(steps.number)]
    most = max(heights, default=0)
    if not most:
        return "<p>No samples in this range.</p>"
    names = [*(service or "[no service]" for service in shown), _OTHERS]
    bars = "".join(
        _column(at, [column[at] for column in columns], names, most, steps)
        for at in range(steps.number)
    )
    legend = "".join(
        f'<li style="--colour:{_COLOURS[number]}">{_link(service, asked)}</li>'
        for number, service in enumerate(shown)
    )
    if rest:
        legend += f'<li style="--colour:{_COLOURS[-1]}">{len(rest)} {_OTHERS}</li>'
    start, end = (
        iso(us) for us in (steps.start_us, steps.start_us + steps.number * steps.length_us)
    )
    peak = most / 1000 / steps.length_us
    about = f"CPUs by service from {start} to {end}, {peak:.3g} at most"
    return f"""<section id="time" data-start="{steps.start_us / 1e6}"
 data-step="{steps.length_us / 1e6}" data-steps="{steps.number}">
<p class="soft">at most {peak:.3g} CPUs, {_length(steps.length_us)} a column; drag to choose a range
</p><svg viewBox="0 0 1000 {_HEIGHT}" preserveAspectRatio="none" role="img"
 aria-label="{about}">{bars}<rect id="picked" y="0" height="{_HEIGHT}" visibility="hidden"/></svg>
<div class="ends"><span>{start}</span><span>{end} UTC</span></div>
<ul class="legend">{legend}</ul></section>"""


def _column(at: int, values: Sequence[int], names: Sequence[str], most: int, steps: Steps) -> str:
    width = 1000 / steps.number
    parts, lines = [], [iso(steps.start_us + at * steps.length_us).replace("T", " ")]
    bottom = float(_HEIGHT)
    for number, value in enumerate(values):
        if not value:
            continue
        height = value / most * (_HEIGHT - 8)
        bottom -= height
        colour = _COLOURS[number if number < len(names) - 1 else -1]
        parts.append(
            f'<rect x="{at * width:.2f}" y="{bottom:.2f}" width="{width * 0.96:.2f}" '
            f'height="{height:.2f}" fill="{colour}"/>'
        )
        lines.append(f"{names[number]}: {value / 1000 / steps.length_us:.3g}")
    return f"<g><title>{text('; '.join(lines))}</title>{''.join(parts)}</g>"


def _link(service: str, asked: Asked) -> str:
    if not service:
        return "[no service]"
    return f'<a href="{escape(asked.address("/", service=service))}">{text(service)}</a>'


def _length(us: int) -> str:
    minutes = us // 60_000_000
    return f"{minutes // 60} h" if minutes % 60 == 0 else f"{minutes} min"
