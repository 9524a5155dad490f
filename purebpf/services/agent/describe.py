"""A configuration's effect, in words. Pure."""

from __future__ import annotations

from purebpf.services.agent.config import Config, Kind, Sink

__all__ = ["describe"]


def describe(config: Config) -> str:
    """A line for each thing that the agent would do."""
    agent, spool = config.agent, config.spool
    lines = [
        f"windows of {agent.window_s:g} s, of host {agent.host or '(its name)'}",
        f"CPU: {_cpu(config.cpu)}",
        f"waits: {_waits(config.wait)}",
        f"budget: {_budget(agent.budget)}",
        f"spool: {agent.state}/spool, at most {spool.max_mb} MB and {spool.max_hours:g} h",
        *[f"sink {sink.name}: {_sink(sink)}" for sink in config.sinks],
        *[f"service {rule.name}: {_rule(rule._asdict())}" for rule in config.services],
        *[f"label {name}: {value}" for name, value in config.labels],
    ]
    metrics = config.metrics
    shown = [place for place in (metrics.listen, metrics.textfile) if place]
    if shown:
        lines.append(f"metrics: {', '.join(shown)}")
    if not config.sinks:
        lines.append("no sinks: nothing is kept")
    return "".join(f"{line}\n" for line in lines)


def _cpu(kind: Kind) -> str:
    if not kind.enabled:
        return "not sampled"
    return (
        f"{kind.frequency} Hz{_share(kind)}; on SIGUSR1 {kind.burst_frequency} Hz for "
        f"{kind.burst_s:g} s"
    )


def _waits(kind: Kind) -> str:
    if not kind.enabled:
        return "not measured"
    if kind.samples:
        return f"off-CPU and run queue, at most {kind.frequency} looks a second"
    return f"off-CPU and run queue of each switch, from {kind.min_us} us on{_share(kind)}"


def _share(kind: Kind) -> str:
    return "" if kind.probability >= 1 else f", in {100 * kind.probability:g} % of the windows"


def _budget(share: float) -> str:
    return f"{100 * share:g} % of a CPU, else it samples less" if share else "any"


def _sink(sink: Sink) -> str:
    where = sink.path if sink.type == "dir" else sink.url
    age = f", nothing older than {sink.max_age_s:g} s" if sink.max_age_s else ""
    return f"{sink.type} {where}{age}"


def _rule(patterns: dict[str, str]) -> str:
    return " and ".join(
        f"{key} ~ {value}" for key, value in patterns.items() if key != "name" and value
    )
