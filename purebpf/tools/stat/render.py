"""Counts as text, JSON or CSV. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from purebpf.results.model.csv_line import csv_line
from purebpf.results.model.json_values import json_object
from purebpf.results.model.spelling import printable
from purebpf.tools.stat.counts import Count, Result
from purebpf.tools.stat.metrics import Metric, metrics

__all__ = ["csv_header", "render"]

_COLUMNS = (
    *("time_s", "key", "event", "value", "unit", "standard_error", "percent_running"),
    *("metric", "metric_unit", "why_not"),
)
_NO_COUNTER = "the CPU had no free counter"
_DIGITS = 3


def render(result: Result, form: str, *, is_interval: bool = False) -> Iterator[str]:
    """A result in "text", "json" or "csv"; of an interval, with the time of its end."""
    if form == "json":
        import json  # which few runs need

        return iter([json.dumps(json_object("stat", _document(result))) + "\n"])
    if form == "csv":
        return _csv(result)
    return _text(result, is_interval=is_interval)


def csv_header() -> str:
    """The first line of CSV."""
    return ",".join(_COLUMNS) + "\n"


def _text(result: Result, *, is_interval: bool) -> Iterator[str]:
    heading = f"{'COUNT':>18}  {'EVENT':26} RATE\n"
    last_key = None
    for count, metric in zip(result.counts, metrics(result.counts, result.elapsed_s), strict=True):
        if count.key != last_key:
            above = f"{result.time_s:.3f} s" if is_interval else ""
            if title := "  ".join(filter(None, (above, printable(count.key)))):
                yield f"{title}\n"
            yield heading
            heading, last_key = "", count.key
        yield f"{_value(count):>18}  {count.event.name:26} {_rate(count, metric)}".rstrip() + "\n"
    if not is_interval:
        yield _times(result)


def _times(result: Result) -> str:
    parts = [f"elapsed {result.elapsed_s:.3f} s{_spread(result.elapsed_s, result.elapsed_error)}"]
    if result.usage is not None:
        parts.append(f"user {result.usage.user_s:.3f} s")
        parts.append(f"system {result.usage.system_s:.3f} s")
    if result.runs > 1:
        parts.append(f"mean of {result.runs} runs")
    return ", ".join(parts) + "\n"


def _value(count: Count) -> str:
    if count.event.why_not:
        return "n/s"
    if count.value is None:
        return "n/c"
    about = "~" if count.is_scaled or count.uncounted else ""
    if count.event.unit == "ns":
        return f"{about}{count.value / 1e6:,.3f} ms"
    if about:
        return about + _few_digits(count.value)
    return f"{count.value:,}" if isinstance(count.value, int) else f"{count.value:,.1f}"


def _rate(count: Count, metric: Metric | None) -> str:
    if count.event.why_not:
        return "not supported here"
    if count.value is None:
        return _NO_COUNTER
    parts = []
    if metric is not None:
        about = "~" if metric.is_estimate else ""
        unit = metric.unit if metric.unit.startswith("%") else f" {metric.unit}"
        parts.append(f"{about}{_few_digits(metric.value)}{unit.replace('%', ' %', 1)}".strip())
    parts.append(_spread(count.value, count.standard_error).strip())
    if count.is_scaled:
        parts.append(f"(had a counter {count.percent_running:.0f} %)")
    return "  ".join(filter(None, parts))


def _spread(value: float, error: float | None) -> str:
    """The standard error in percent of a mean."""
    if error is None:
        return ""
    return f" +- {_few_digits(100 * error / value if value else 0.0)} %"


def _few_digits(value: float) -> str:
    """Return the number with three digits, and zeros: an estimate or a rate has no more."""
    if value < 10**_DIGITS - 0.5:
        return f"{value:.{_DIGITS}g}"
    whole = round(value)
    return f"{round(whole, _DIGITS - len(str(whole))):,}"


def _document(result: Result) -> dict[str, object]:
    rates = metrics(result.counts, result.elapsed_s)
    document: dict[str, object] = {
        "time_s": round(result.time_s, 6),
        "elapsed_s": round(result.elapsed_s, 6),
        "runs": result.runs,
        "elapsed_standard_error_s": result.elapsed_error,
        "counts": [_object(*pair) for pair in zip(result.counts, rates, strict=True)],
        "loss": {cause.name: cause.lost for cause in result.loss.causes},
        "notes": list(result.notes),
    }
    if result.usage is not None:
        document["command"] = result.usage._asdict()
    return document


def _object(count: Count, metric: Metric | None) -> Mapping[str, object]:
    return {
        "event": count.event.name,
        "group": count.event.group,
        "key": count.key,
        "value": count.value,
        "unit": count.event.unit,
        "counted": count.counted,
        "enabled_ns": count.enabled_ns,
        "running_ns": count.running_ns,
        "percent_running": round(count.percent_running, 2),
        "standard_error": count.standard_error,
        "metric": None if metric is None else metric._asdict(),
        "why_not": _why_not(count),
    }


def _why_not(count: Count) -> str:
    return count.event.why_not or (_NO_COUNTER if count.value is None else "")


def _csv(result: Result) -> Iterator[str]:
    for count, metric in zip(result.counts, metrics(result.counts, result.elapsed_s), strict=True):
        rate = ("", "") if metric is None else (f"{metric.value:.6g}", metric.unit)
        yield csv_line(
            (
                f"{result.time_s:.6f}",
                count.key,
                count.event.name,
                "" if count.value is None else count.value,
                count.event.unit,
                "" if count.standard_error is None else f"{count.standard_error:.6g}",
                f"{count.percent_running:.2f}",
                *rate,
                _why_not(count),
            )
        )
