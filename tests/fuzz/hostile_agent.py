"""What the agent reads, for `mutate.py`: windows of its spool, and its configuration."""

from __future__ import annotations

from collections.abc import Iterator

from purebpf.results.formats.otlp import Entry, Sample, Series, Window, document
from purebpf.results.formats.otlp_reader import read_document
from purebpf.services.agent.config import Sink, parse_config
from purebpf.services.agent.describe import describe
from purebpf.services.agent.pprof_profile import pprof_of
from purebpf.services.agent.services import Process, Services
from purebpf.services.agent.sinks import make_sink

_CONFIGURATION = """
[agent]
state = "/var/lib/purebpf"
window_s = 60.0
budget = 0.005
[cpu]
frequency = 19
probability = 0.5
[wait]
enabled = true
min_us = 1000
[spool]
max_mb = 512
[[sink]]
type = "dir"
path = "/srv/profiles"
[[sink]]
type = "pyroscope"
url = "http://[::1]:4040/base"
timeout_s = 10.0
max_age_s = 3600
[[service]]
name = 'shop-\\1'
cgroup = 'shop-(\\d+)'
[labels]
env = "prod"
"""


def window_seeds() -> Iterator[bytes]:
    """A window of two services, unpacked."""
    window = Window("samples", "count", 10**18, 6 * 10**10, 52_631_579, (("purebpf.n", 3),), b"i")
    file = Entry("", "libc.so.6", "user", "ab" * 20, 4096)
    stack = (Entry("work", "shop", "user"), Entry("main", "shop", "user"), file)
    samples = {Sample("a", stack): 3, Sample("b", stack[:1]): 4}
    yield document(
        window,
        [Series((("service.name", name), ("shard", -5)), samples) for name in ("shop", "web")],
    )


def run_window(data: bytes) -> None:
    """Read a window, and write it as stores want it."""
    for service in read_document(data):
        assert pprof_of(service)


def configuration_seeds() -> Iterator[bytes]:
    """All sections."""
    yield _CONFIGURATION.encode()


def run_configuration(data: bytes) -> None:
    """Read a configuration, describe it, and make what it asks for; nothing is sent."""
    config = parse_config(data.decode(errors="replace"))
    assert describe(config)
    for sink in config.sinks:
        if sink.ca_file == Sink("").ca_file:
            make_sink(sink)
    services = Services(config.services, config.labels, "host")
    assert services.resource(Process("shop-5", "0::/shop-7.service", "/srv/shop-9"))
