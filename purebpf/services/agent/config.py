"""The agent's configuration: a TOML file, read strictly. Pure.

Every key has a default, so that an empty file is a configuration; a key that this module does not
know is an error that names it. `docs/agent.md` has all keys.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from purebpf.errors import PurebpfError
from purebpf.similar import unknown_name

__all__ = ["Config", "ConfigError", "Kind", "Metrics", "Rule", "Sink", "parse_config"]

SINKS = ("dir", "otlp", "pyroscope", "parca")
METHODS = ("sample", "trace")
_HOUR_S = 3600.0


class ConfigError(PurebpfError):
    """The file is not a configuration: says which key, with its value."""


class Kind(NamedTuple):
    """Section [cpu] or [wait]: the kind of measurement, and its share of the time.

    `frequency` in Hertz. `burst_frequency`, too, of [cpu] only: SIGUSR1 asks for a burst of
    `burst_s`. A window is measured with `probability`. `method`, of [wait] only: "sample" looks
    `frequency` times a second where threads wait, "trace" follows each switch; then shorter waits
    than `min_us` do not count.
    """

    enabled: bool = True
    frequency: int = 19
    burst_frequency: int = 99
    burst_s: float = 300.0
    probability: float = 1.0
    min_us: int = 0
    call_graph: str = "auto"
    python: bool = True
    method: str = "sample"

    @property
    def samples(self) -> bool:
        """True if waits are sampled, not traced."""
        return self.method == "sample"


class Settings(NamedTuple):
    """Section [agent]. `budget` is a share of one CPU; 0: without. "" as `host`: the machine's."""

    state: str = "/var/lib/purebpf"
    host: str = ""
    window_s: float = 60.0
    budget: float = 0.005
    jitter_s: float = 10.0
    pod_logs: str = "/var/log"


class Room(NamedTuple):
    """Section [spool]: the windows kept for sinks that cannot be reached."""

    max_mb: int = 512
    max_hours: float = 24.0


class Sink(NamedTuple):
    """A section [[sink]]: where windows go. `max_age_s`: older ones are dropped for it, counted."""

    type: str
    name: str = ""
    path: str = ""
    url: str = ""
    token_file: str = ""
    tenant: str = ""
    ca_file: str = ""
    timeout_s: float = 10.0
    max_age_s: float = 0.0


class Rule(NamedTuple):
    r"""A section [[service]]: the first one whose patterns all match names the service.

    The name may hold groups of the patterns: `\1` of the first one that is there.
    """

    name: str
    cgroup: str = ""
    comm: str = ""
    exe: str = ""


class Metrics(NamedTuple):
    """Section [metrics]: the data for Prometheus; "" as `listen` and `textfile`: none.

    `scheduler` and `syscalls` have the kernel count more than the profile needs.
    """

    listen: str = ""
    textfile: str = ""
    certificate: str = ""
    key: str = ""
    client_ca: str = ""
    scheduler: bool = False
    syscalls: bool = False


class Config(NamedTuple):
    """All of it."""

    agent: Settings = Settings()
    cpu: Kind = Kind()
    wait: Kind = Kind(enabled=False, frequency=1, min_us=1000)
    spool: Room = Room()
    metrics: Metrics = Metrics()
    sinks: tuple[Sink, ...] = ()
    services: tuple[Rule, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()


_Section = TypeVar("_Section", Kind, Settings, Room, Metrics, Sink, Rule)


def parse_config(text: str, where: str = "the configuration") -> Config:
    """The configuration in a TOML text.

    Raises:
        ConfigError: it is not TOML, or a key or value is not known.
    """
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where} is not TOML: {error}") from error
    except (RecursionError, ValueError) as error:  # tables in tables; numbers, years out of range
        raise ConfigError(f"{where} is not a configuration: {error}") from error
    known = ("agent", "cpu", "wait", "spool", "metrics", "sink", "service", "labels")
    for name in table:
        if name not in known:
            raise ConfigError(f"{where}: {unknown_name(known, name, 'unknown section').args[0]}")
    default = Config()
    config = Config(
        _read_section(default.agent, table.get("agent", {}), "agent", where),
        _read_section(default.cpu, table.get("cpu", {}), "cpu", where),
        _read_section(default.wait, table.get("wait", {}), "wait", where),
        _read_section(default.spool, table.get("spool", {}), "spool", where),
        _read_section(default.metrics, table.get("metrics", {}), "metrics", where),
        tuple(
            _read_section(Sink(""), sink, f"sink {number}", where)
            for number, sink in enumerate(_list(table, "sink", where), 1)
        ),
        tuple(
            _read_section(Rule(""), rule, f"service {number}", where)
            for number, rule in enumerate(_list(table, "service", where), 1)
        ),
        _labels(table.get("labels", {}), where),
    )
    sinks = tuple(_check_sink(sink, number, where) for number, sink in enumerate(config.sinks, 1))
    config = config._replace(sinks=sinks)
    _check(config, where)
    return config


def _labels(given: object, where: str) -> tuple[tuple[str, str], ...]:
    if not isinstance(given, dict):
        raise ConfigError(f"{where}: labels is not a section: {given!r}")
    return tuple((name, str(value)) for name, value in given.items())


def _list(table: Mapping[str, Any], name: str, where: str) -> list[Any]:
    value = table.get(name, [])
    if not isinstance(value, list):
        raise ConfigError(f"{where}: write [[{name}]], not [{name}]: there may be several")
    return value


def _read_section(default: _Section, given: object, name: str, where: str) -> _Section:
    if not isinstance(given, dict):
        raise ConfigError(f"{where}: {name} is not a section: {given!r}")
    values = {}
    for key, value in given.items():
        if key not in default._fields:
            problem = unknown_name(default._fields, key, f"unknown key in [{name}]:").args[0]
            raise ConfigError(f"{where}: {problem}")
        kind = type(getattr(default, key))
        number = kind is float and isinstance(value, int) and not isinstance(value, bool)
        if type(value) is not kind and not number:
            raise ConfigError(f"{where}: [{name}] {key} = {value!r}: expected {_TYPES[kind]}")
        try:
            values[key] = kind(value)
        except OverflowError as error:
            raise ConfigError(f"{where}: [{name}] {key} is too large") from error
    return default._replace(**values)


_TYPES = {bool: "true or false", int: "a whole number", float: "a number", str: "a string"}


def _check(config: Config, where: str) -> None:
    limits: tuple[tuple[str, float, float, float], ...] = (
        ("[agent] window_s", config.agent.window_s, 1, _HOUR_S),
        ("[agent] budget", config.agent.budget, 0, 1),
        ("[agent] jitter_s", config.agent.jitter_s, 0, 60),
        ("[cpu] frequency", config.cpu.frequency, 1, 999),
        ("[cpu] burst_frequency", config.cpu.burst_frequency, 1, 999),
        ("[cpu] burst_s", config.cpu.burst_s, 1, _HOUR_S),
        ("[cpu] probability", config.cpu.probability, 0.001, 1),
        ("[wait] frequency", config.wait.frequency, 1, 99),
        ("[wait] probability", config.wait.probability, 0.001, 1),
        ("[wait] min_us", config.wait.min_us, 0, 10**9),
        ("[spool] max_mb", config.spool.max_mb, 1, 1 << 20),
        ("[spool] max_hours", config.spool.max_hours, 0.01, 8760),
    )
    for name, value, least, most in limits:
        if not least <= value <= most:
            raise ConfigError(f"{where}: {name} = {value}: expected {least:g} to {most:g}")
    _check_waits(config, where)
    _check_metrics(config.metrics, where)
    names = [sink.name for sink in config.sinks]
    if len({*names}) < len(names):
        raise ConfigError(f"{where}: two sinks have one name: {', '.join(names)}")
    for rule in config.services:
        if not rule.name or not (rule.cgroup or rule.comm or rule.exe):
            raise ConfigError(f"{where}: a [[service]] needs a name, and cgroup, comm or exe")
        for pattern in filter(None, (rule.cgroup, rule.comm, rule.exe)):
            try:
                re.compile(pattern)
            except (re.error, OverflowError, RecursionError) as error:
                raise ConfigError(f"{where}: not a pattern: {pattern!r}: {error}") from error


def _check_waits(config: Config, where: str) -> None:
    method = config.wait.method
    if method not in METHODS:
        known = ", ".join(METHODS)
        raise ConfigError(f"{where}: [wait] method = {method!r}; known: {known}")
    if config.wait.enabled and config.wait.samples and not config.cpu.enabled:
        raise ConfigError(
            f"{where}: [wait] method = 'sample' reads stacks with what [cpu] knows of processes: "
            "enable that, or write method = 'trace'"
        )


def _check_metrics(metrics: Metrics, where: str) -> None:
    host, colon, port = metrics.listen.rpartition(":")
    if metrics.listen and not (host and colon and port.isdecimal() and int(port) < 1 << 16):
        raise ConfigError(f"{where}: [metrics] listen = {metrics.listen!r}: expected ADDR:PORT")
    if metrics.textfile and not metrics.textfile.startswith("/"):
        raise ConfigError(f"{where}: [metrics] textfile = {metrics.textfile!r} is not absolute")
    if metrics.textfile and not metrics.textfile.endswith(".prom"):
        raise ConfigError(f"{where}: [metrics] textfile: node_exporter reads names with .prom")
    if bool(metrics.certificate) != bool(metrics.key):
        raise ConfigError(f"{where}: [metrics] certificate and key: both, or neither")
    if metrics.client_ca and not metrics.certificate:
        raise ConfigError(f"{where}: [metrics] client_ca needs a certificate and a key")


def _check_sink(sink: Sink, number: int, where: str) -> Sink:
    if sink.type not in SINKS:
        kinds = ", ".join(SINKS)
        raise ConfigError(f"{where}: sink {number} has type {sink.type!r}; known: {kinds}")
    name = sink.name or (sink.type if number == 1 else f"{sink.type}{number}")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", name):
        raise ConfigError(f"{where}: sink {number}: not a name: {name!r}")
    if sink.type == "dir":
        if not sink.path.startswith("/"):
            raise ConfigError(f"{where}: sink {name}: path = {sink.path!r} is not absolute")
        return sink._replace(name=name)
    if not _is_http(sink.url):
        raise ConfigError(f"{where}: sink {name}: url = {sink.url!r} is not an HTTP address")
    if not (0 < sink.timeout_s <= _HOUR_S and sink.max_age_s >= 0):
        raise ConfigError(f"{where}: sink {name}: timeout_s or max_age_s is out of range")
    max_age_s = sink.max_age_s
    if sink.type == "pyroscope" and not max_age_s:
        max_age_s = _HOUR_S  # it refuses older ones (pkg/validation/limits.go)
    return sink._replace(name=name, max_age_s=max_age_s)


def _is_http(url: str) -> bool:
    try:
        address = urlsplit(url)
        return address.scheme in ("http", "https") and bool(address.hostname) and address.port != 0
    except ValueError:  # brackets without an end, a port that is not one
        return False
