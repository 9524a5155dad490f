"""Sinks that speak HTTP: OTLP, Pyroscope, Parca.

- OTLP/HTTP: opentelemetry-proto, docs/specification.md; POST /v1development/profiles.
- Pyroscope: POST /ingest with a pprof file for each service (grafana/pyroscope, its
  pkg/ingester/pyroscope).
- Parca: POST /profiles/writeraw, the JSON gateway of WriteRaw (parca-dev/parca, its
  proto/parca/profilestore).
"""

from __future__ import annotations

import gzip
import http.client
import json
import ssl
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import closing
from urllib.parse import quote, urlencode, urlsplit

from purebpf import __version__
from purebpf.results.formats.otlp import Attribute
from purebpf.results.formats.otlp_reader import ServiceProfile, read_document
from purebpf.services.agent.config import Sink
from purebpf.services.agent.outcome import Outcome
from purebpf.services.agent.pprof_profile import pprof_of
from purebpf.syscall.deadline import Deadline

__all__ = ["Otlp", "Parca", "Pyroscope"]

_RETRIED = (408, 429, 500, 502, 503, 504)
_UNAUTHORIZED = (401, 403, 404, 407)
_LONGEST_BODY = 1 << 16
_LONGEST_TOKEN = 1 << 16
_LONGEST_REASON = 200
_TIMEOUTS = 12
"""A whole request may take that many times what a store may be silent."""
_LABELS = {"k8s.namespace.name": "namespace", "k8s.pod.name": "pod", "host.name": "instance"}


class Http:
    """Posts to one address, without following redirects."""

    def __init__(self, sink: Sink, path: str) -> None:
        self._sink = sink
        self._address = urlsplit(sink.url)
        self._path = self._address.path.rstrip("/") + path
        self._context = None
        if self._address.scheme == "https":
            self._context = ssl.create_default_context(cafile=sink.ca_file or None)

    def post(self, body: bytes, headers: Mapping[str, str], query: str = "") -> Outcome:
        """Post once."""
        limit_s = _TIMEOUTS * self._sink.timeout_s
        with Deadline(limit_s) as deadline:
            try:
                headers = {**self._own_headers(), **headers}
                with closing(self._connect(deadline)) as connection:
                    connection.request("POST", self._path + query, body, headers)
                    response = connection.getresponse()
                    text = response.read(_LONGEST_BODY)
                    if response.length and len(text) < _LONGEST_BODY:
                        raise http.client.IncompleteRead(text, response.length)
                if deadline.is_over:  # headers that were cut off look whole to http.client
                    raise TimeoutError
            except (OSError, http.client.HTTPException, ValueError) as error:
                why = str(error) or type(error).__name__
                if deadline.is_over:
                    why = f"no whole answer in {limit_s:g} s"
                return Outcome(why=f"{self._sink.url}: {_quote(why)}")
        return _judge(response.status, response.getheader("Retry-After"), text, self._sink.url)

    def _own_headers(self) -> dict[str, str]:
        """Return the headers of the configuration. Raises OSError, ValueError."""
        headers = {"User-Agent": f"purebpf/{__version__}"}
        if self._sink.token_file:
            with open(self._sink.token_file, encoding="latin-1") as file:
                token = file.read(_LONGEST_TOKEN).strip()
            if not (token.isascii() and token.isprintable()):  # http.client's error would show it
                raise ValueError(f"{self._sink.token_file} is not a token: expected one line")
            headers["Authorization"] = f"Bearer {token}"
        if self._sink.tenant:
            headers["X-Scope-OrgID"] = self._sink.tenant
        return headers

    def _connect(self, deadline: Deadline) -> http.client.HTTPConnection:
        address, timeout_s = self._address, self._sink.timeout_s
        host = address.hostname or ""
        connection: http.client.HTTPConnection
        if self._context is not None:
            connection = http.client.HTTPSConnection(
                host, address.port, timeout=timeout_s, context=self._context
            )
        else:
            connection = http.client.HTTPConnection(host, address.port, timeout=timeout_s)
        # there is no public way
        connection._create_connection = deadline.connect  # type: ignore[attr-defined]  # noqa: SLF001
        return connection


def _quote(text: str) -> str:
    """Return a store's answer, for a line of a log."""
    return "".join(filter(str.isprintable, text[:_LONGEST_REASON]))


def _judge(status: int, retry_after: str | None, body: bytes, url: str) -> Outcome:
    """Return the meaning of a status. A part that was refused is not sent again, by the
    specification.
    """
    if 200 <= status < 300:
        return Outcome(is_done=True)
    said = body[:_LONGEST_REASON].decode(errors="replace")
    why = f"{url}: HTTP {status} {_quote(said)}".rstrip()
    if status in _RETRIED or status in _UNAUTHORIZED:
        after_s = float(retry_after) if retry_after and retry_after.isdecimal() else 0.0
        return Outcome(after_s=min(after_s, 3600.0), why=why)
    return Outcome(is_refused=True, why=why)


class Otlp:
    """The file as it is."""

    def __init__(self, sink: Sink) -> None:
        self._http = Http(sink, "/v1development/profiles")

    def send(self, name: str, data: bytes) -> Outcome:
        """Post it."""
        return self._http.post(
            data,
            {
                "Content-Type": "application/x-protobuf",
                "Content-Encoding": "gzip",
                "X-Purebpf-Delivery": name,
            },
        )


class _Services:
    """A window that is sent service by service; those that a sink has are not sent again."""

    def __init__(self) -> None:
        self._name = ""
        self._sent = 0

    def send(self, name: str, data: bytes) -> Outcome:
        if name != self._name:
            self._name, self._sent = name, 0
        for profile in _profiles(data)[self._sent :]:
            outcome = self.send_profile(profile)
            if not outcome.is_done:
                return outcome
            self._sent += 1
        return Outcome(is_done=True)

    def send_profile(self, profile: ServiceProfile) -> Outcome:
        raise NotImplementedError


class Pyroscope(_Services):
    """A pprof file for each service."""

    def __init__(self, sink: Sink) -> None:
        super().__init__()
        self._http = Http(sink, "/ingest")

    def send_profile(self, profile: ServiceProfile) -> Outcome:
        """Post one service's."""
        window, (resource, _) = profile.window, profile.series
        labels = ",".join(f"{name}={_plain(value)}" for name, value in _labels(resource))
        service = _plain(str(dict(resource).get("service.name", "unknown")))
        query = {
            "name": f"{service}{{{labels}}}",
            "from": window.started_ns // 10**9,
            "until": -(-(window.started_ns + window.duration_ns) // 10**9),
            "format": "pprof",
            "spyName": "purebpf",
        }
        headers = {"Content-Type": "application/octet-stream"}
        return self._http.post(pprof_of(profile), headers, f"?{urlencode(query, quote_via=quote)}")


class Parca(_Services):
    """A pprof file for each service, in JSON."""

    def __init__(self, sink: Sink) -> None:
        super().__init__()
        self._http = Http(sink, "/profiles/writeraw")

    def send_profile(self, profile: ServiceProfile) -> Outcome:
        """Post one service's."""
        resource = profile.series.resource
        kind = "process_cpu" if profile.window.period_ns else profile.window.type
        service = str(dict(resource).get("service.name", "unknown"))
        labels = [("__name__", kind), ("service_name", service), *_labels(resource)]
        series = {
            "labels": {"labels": [{"name": name, "value": value} for name, value in labels]},
            "samples": [{"rawProfile": b64encode(pprof_of(profile)).decode()}],
        }
        body = json.dumps({"series": [series], "normalized": True}).encode()
        return self._http.post(body, {"Content-Type": "application/json"})


def _profiles(data: bytes) -> list[ServiceProfile]:
    profiles = read_document(gzip.decompress(data))
    return [profile for profile in profiles if profile.series.samples]


def _labels(resource: tuple[Attribute, ...]) -> Iterator[tuple[str, str]]:
    """Attributes as the labels of Prometheus are written."""
    for name, value in resource:
        if name not in ("service.name", "container.id", "k8s.pod.uid"):
            text = _LABELS.get(name) or "".join(c if c.isalnum() else "_" for c in name)
            yield text, str(value)


def _plain(value: str | int) -> str:
    """Return a text without the characters of Pyroscope's name{label=value,...}."""
    return "".join("_" if char in '{},="' else char for char in str(value))
