"""Sinks: what they are sent, and what becomes of each way in which a store can fail."""

from __future__ import annotations

import base64
import gzip
import json
import os
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from purebpf.results.formats import pprof_reader
from purebpf.results.formats.otlp import Entry, Sample, Series, Window, document
from purebpf.services.agent.config import Sink
from purebpf.services.agent.sender import Sender
from purebpf.services.agent.sinks import make_sink
from purebpf.services.agent.spool import Spool, file_name
from tests.support.host.http_sink import HttpSink, serving

NOW_NS = time.time_ns()
WINDOW = Window("samples", "count", NOW_NS, 60 * 10**9, 52_631_579)
STACK = (Entry("work", "shop", "user"), Entry("main", "shop", "user"))
SERVICES = [
    Series((("service.name", name), ("host.name", "n1"), ("env", "prod")), {Sample("a", STACK): n})
    for name, n in (("shop", 7), ("web", 11))
]
DATA = gzip.compress(document(WINDOW, SERVICES))


def name(minutes_ago: int = 0, number: int = 0) -> str:
    return file_name(NOW_NS - minutes_ago * 60 * 10**9, "cpu", "0123abcd", number)


class Setup:
    """A spool with one sink, and what the sender said."""

    def __init__(self, tmp_path: Path, sink: Sink, *, max_age_s: float = 0) -> None:
        self.spool = Spool(str(tmp_path / "spool"), ["s"], max_bytes=1 << 20, max_age_s=1e6)
        self.said: list[str] = []
        self.sender = Sender(
            "s", make_sink(sink), self.spool, max_age_s=max_age_s, say=self.said.append
        )

    def add(self, *minutes_ago: int) -> None:
        for minutes in minutes_ago:
            self.spool.add(name(minutes), DATA)


@pytest.fixture
def store():
    with serving() as sink:
        yield sink


def test_otlp_is_posted_as_it_is(store: HttpSink, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")
    setup = Setup(tmp_path, Sink("otlp", url=store.url, token_file=str(token), tenant="t1"))
    setup.add(1)
    setup.sender.send_waiting()
    (request,) = store.received
    assert request.path == "/v1development/profiles"
    assert request.body == DATA
    assert request.headers["Content-Type"] == "application/x-protobuf"
    assert request.headers["Content-Encoding"] == "gzip"
    assert request.headers["Authorization"] == "Bearer secret"
    assert request.headers["X-Scope-OrgID"] == "t1"
    assert request.headers["X-Purebpf-Delivery"] == name(1)
    assert (setup.sender.sent, setup.spool.nbytes) == (1, 0)


def test_pyroscope_gets_a_pprof_file_for_each_service(store: HttpSink, tmp_path: Path) -> None:
    setup = Setup(tmp_path, Sink("pyroscope", url=f"{store.url}/base"))
    setup.add(0)
    setup.sender.send_waiting()
    names = []
    for request, samples in zip(store.received, (7, 11), strict=True):
        address = urlsplit(request.path)
        assert address.path == "/base/ingest"
        query = parse_qs(address.query)
        names.append(query["name"][0])
        assert query["format"] == ["pprof"]
        assert int(query["until"][0]) - int(query["from"][0]) in (60, 61)
        profile = pprof_reader.parse(gzip.decompress(request.body), "sent")
        assert profile.total == samples * WINDOW.period_ns
        (row,) = profile.rows()
        assert row.user is not None
        assert [entry.name for entry in row.user] == ["work", "main"]  # type: ignore[union-attr]
    assert names == ["shop{instance=n1,env=prod}", "web{instance=n1,env=prod}"]


def test_parca_gets_them_in_json(store: HttpSink, tmp_path: Path) -> None:
    setup = Setup(tmp_path, Sink("parca", url=store.url))
    setup.add(0)
    setup.sender.send_waiting()
    assert [request.path for request in store.received] == ["/profiles/writeraw"] * 2
    (series,) = json.loads(store.received[1].body)["series"]
    labels = {label["name"]: label["value"] for label in series["labels"]["labels"]}
    assert labels == {
        "__name__": "process_cpu", "service_name": "web", "instance": "n1", "env": "prod",
    }  # fmt: skip
    raw = base64.b64decode(series["samples"][0]["rawProfile"])
    assert pprof_reader.parse(gzip.decompress(raw), "sent").total == 11 * WINDOW.period_ns


def test_what_a_store_has_of_a_window_is_not_sent_again(store: HttpSink, tmp_path: Path) -> None:
    setup = Setup(tmp_path, Sink("pyroscope", url=store.url))
    setup.add(0)
    store.answers = [(200, {}), (503, {}), (200, {})]
    setup.sender.send_one()
    setup.sender.send_one()
    services = [parse_qs(urlsplit(each.path).query)["name"][0][:3] for each in store.received]
    assert services == ["sho", "web", "web"]
    assert setup.sender.sent == 1


def test_a_directory_gets_whole_files(tmp_path: Path) -> None:
    setup = Setup(tmp_path, Sink("dir", path=str(tmp_path / "out")))
    setup.add(2, 1)
    setup.sender.send_waiting()
    files = sorted(path.name for path in (tmp_path / "out").rglob("*.gz"))
    assert files == [name(2), name(1)]
    assert not [*(tmp_path / "out").rglob(".*")]


def test_a_directory_that_cannot_be_made_is_tried_again(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    setup = Setup(tmp_path, Sink("dir", path=str(tmp_path / "out")))
    setup.add(1)
    assert setup.sender.send_one() >= 0
    assert (setup.sender.failed, setup.spool.waiting("s")) == (1, 1)
    (tmp_path / "out").unlink()
    setup.sender.send_waiting()
    assert setup.sender.sent == 1


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 401, 403, 404])
def test_a_store_that_may_recover_gets_the_window_later(
    status: int, store: HttpSink, tmp_path: Path
) -> None:
    setup = Setup(tmp_path, Sink("otlp", url=store.url))
    setup.add(1)
    store.answers = [(status, {"Retry-After": "17"}), (200, {})]
    assert setup.sender.send_one() >= 17
    assert setup.spool.waiting("s") == 1
    setup.sender.send_one()
    assert (setup.sender.sent, setup.sender.failed, setup.spool.dropped) == (1, 1, 0)
    assert setup.said[-1] == "sink s: sends again"


@pytest.mark.parametrize("status", [400, 413, 415, 422, 501])
def test_what_a_store_refuses_is_dropped_and_counted(
    status: int, store: HttpSink, tmp_path: Path
) -> None:
    setup = Setup(tmp_path, Sink("otlp", url=store.url))
    setup.add(1)
    store.answers = [(status, {})]
    setup.sender.send_one()
    assert (setup.sender.refused, setup.spool.dropped, setup.spool.waiting("s")) == (1, 1, 0)
    assert f"HTTP {status}" in setup.said[0]


def test_a_window_that_breaks_the_store_does_not_block_the_others(
    store: HttpSink, tmp_path: Path
) -> None:
    setup = Setup(tmp_path, Sink("otlp", url=store.url))
    setup.add(2, 1)
    store.answers = [(500, {})] * 8
    for _ in range(9):
        setup.sender.send_one()
    assert (setup.sender.refused, setup.sender.sent) == (1, 1)


def test_a_store_that_closes_in_mid_answer_is_tried_again(store: HttpSink, tmp_path: Path) -> None:
    setup = Setup(tmp_path, Sink("otlp", url=store.url))
    setup.add(1)
    store.answers = [(0, {})]
    setup.sender.send_one()
    assert (setup.sender.failed, setup.sender.sent) == (1, 0)
    setup.sender.send_one()
    assert setup.sender.sent == 1


def test_a_store_that_hangs_is_left_after_the_timeout(store: HttpSink, tmp_path: Path) -> None:
    setup = Setup(tmp_path, Sink("otlp", url=store.url, timeout_s=0.2))
    setup.add(1)
    store.answers = [(-1, {})]
    setup.sender.send_one()
    assert setup.sender.failed == 1
    assert "timed out" in setup.said[0]
    assert setup.spool.waiting("s") == 1


def test_a_store_that_is_away_is_said_once(tmp_path: Path) -> None:
    setup = Setup(tmp_path, Sink("otlp", url="http://127.0.0.1:9"))
    setup.add(1)
    for _ in range(5):
        setup.sender.send_one()
    assert setup.sender.failed == 5
    assert len(setup.said) == 1
    assert setup.spool.waiting("s") == 1


def test_the_newest_goes_first_then_the_backlog(store: HttpSink, tmp_path: Path) -> None:
    setup = Setup(tmp_path, Sink("otlp", url=store.url))
    setup.add(4, 2, 3)
    delays = [setup.sender.send_one() for _ in range(3)]
    sent = [request.headers["X-Purebpf-Delivery"] for request in store.received]
    assert sent == [name(2), name(3), name(4)]
    assert delays == [0.25] * 3, "four a second"


def test_what_is_too_old_for_a_sink_is_dropped(store: HttpSink, tmp_path: Path) -> None:
    setup = Setup(tmp_path, Sink("pyroscope", url=store.url), max_age_s=3600)
    setup.add(61, 1)
    setup.sender.send_waiting()
    assert (setup.sender.sent, setup.spool.dropped) == (1, 1)


@pytest.mark.parametrize("kind", ["otlp", "pyroscope"])
@pytest.mark.parametrize("damage", [DATA[:-20], b"", b"\x1f\x8b" + bytes(30), DATA + b"tail"])
def test_a_damaged_file_is_set_aside_and_the_next_goes(
    kind: str, damage: bytes, store: HttpSink, tmp_path: Path
) -> None:
    setup = Setup(tmp_path, Sink(kind, url=store.url))
    setup.spool.add(name(0), damage)
    setup.add(1)
    setup.sender.send_waiting()
    assert (setup.sender.sent, setup.spool.corrupt) == (1, 1)
    assert os.listdir(tmp_path / "spool" / "corrupt") == [f"s-{name(0)}"]
    assert "set aside" in setup.said[0]


def test_threads_send_what_comes_and_end(store: HttpSink, tmp_path: Path) -> None:
    setup = Setup(tmp_path, Sink("otlp", url=store.url))
    setup.sender.start()
    setup.add(2, 1)
    for _ in range(400):
        if setup.sender.sent == 2:
            break
        time.sleep(0.05)
    setup.sender.stop()
    assert setup.sender.sent == 2
