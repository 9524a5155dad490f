"""The hub as it runs, and the commands that ask its store: over HTTP, killed, from an agent."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import random
import re
import shutil
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import duckdb
import pytest

from tests.commands.conftest import ROOT
from tests.support.host.deliveries import HOUR_S, Truth, messages

PATIENCE_S = 60
PATH = "/v1development/profiles"
RANGE = ("--since", "2026-11-22T15:00", "--until", "2026-11-22T16:00")
KILLS = int(os.environ.get("PUREBPF_KILLS") or 4)
"""`PUREBPF_KILLS=200` takes fifteen minutes."""


@contextmanager
def hub(store: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A hub on a free port."""
    words = [sys.executable, "-m", "purebpf", "fleet", "hub", "--store", str(store)]
    with subprocess.Popen(
        [*words, "--listen", "127.0.0.1:0", "--pause", "0.1", *arguments],
        stderr=subprocess.PIPE, text=True, cwd=ROOT,
    ) as process:  # fmt: skip
        try:
            assert process.stderr
            line = process.stderr.readline()
            found = re.search(r"http.*:(\d+)\n", line)
            assert found, line + process.stderr.read()
            yield process, int(found[1])
        finally:
            process.kill()


def post(port: int, data: bytes, *, path: str = PATH, **headers: str) -> tuple[int, str]:
    sent = {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)) as connection:
        connection.request("POST", path, data, sent)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def fleet(store: Path, *arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "purebpf", "fleet", *arguments, "--store", str(store)]
    done = subprocess.run(
        words, capture_output=True, text=True, cwd=ROOT, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == status, done.stderr
    return done


def sums(store: Path) -> Mapping[str, int]:
    """Nanoseconds by service."""
    statement = "select service, sum(value)::bigint from samples group by service"
    lines = fleet(store, "sql", statement, *RANGE).stdout.splitlines()[1:]
    return {name: int(value) for name, value in (line.split("\t") for line in lines)}


def test_what_is_answered_is_stored(tmp_path: Path) -> None:
    truth = Truth()
    sent = [gzip.compress(one.data) for one in messages(truth, hosts=2, minutes=1)]
    with hub(tmp_path) as (process, port):
        assert [post(port, data) for data in sent] == [(200, "")] * len(sent)
        process.send_signal(signal.SIGKILL)  # nothing is left to be written
    assert sums(tmp_path) == truth.service
    top = fleet(tmp_path, "top", *RANGE)
    heaviest = max(truth.own, key=truth.own.__getitem__)
    share = 100 * truth.own[heaviest] / sum(truth.own.values())
    assert re.search(rf"^ *{share:.2f}% .* {heaviest} \[", top.stdout, re.MULTILINE)
    assert "coverage: 2 hosts, 2 of 2 windows (100.0 %), 2278 samples, lost: 2" in top.stderr
    assert fleet(tmp_path, "top", "--strict", *RANGE, status=3).stdout == top.stdout


def test_answers_to_what_is_wrong(tmp_path: Path) -> None:
    (sent,) = messages(Truth(), hosts=1, minutes=1)
    with hub(tmp_path) as (_, port):
        assert post(port, b"no gzip")[0] == 400
        assert post(port, gzip.compress(b"\xff" * 40))[0] == 400
        bomb = gzip.compress(bytes(64 << 20))
        assert post(port, bomb) == (413, "more than 16 MiB, unpacked\n")
        assert post(port, gzip.compress(sent.data)[:-9])[0] == 400
        assert post(port, sent.data, Content_Type="application/json")[0] == 415
        assert post(port, sent.data, Content_Encoding="zstd")[0] == 400
        assert post(port, sent.data, path="/other")[0] == 404
        assert post(port, sent.data, Content_Encoding="identity") == (200, "")
    assert sum(sums(tmp_path).values()) > 0


def test_a_token_writes_for_its_host_only(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("# who\nall-of-them\nof-one host0\n")
    tokens.chmod(0o600)
    first, second = (gzip.compress(one.data) for one in messages(Truth(), hosts=2, minutes=1))
    with hub(tmp_path / "store", "--tokens", str(tokens)) as (_, port):
        assert post(port, first)[0] == 401
        assert post(port, first, Authorization="Bearer wrong")[0] == 401
        status, why = post(port, second, Authorization="Bearer of-one")
        assert (status, why) == (400, "this token is that of host0, not of 'host1'\n")
        assert post(port, first, Authorization="Bearer of-one")[0] == 200
        assert post(port, second, Authorization="Bearer all-of-them")[0] == 200
    tokens.chmod(0o644)
    done = fleet(tmp_path / "store", "hub", "--tokens", str(tokens), status=1)
    assert "everybody may read the tokens" in done.stderr


def test_it_listens_to_others_with_tls_only(tmp_path: Path) -> None:
    done = fleet(tmp_path, "hub", "--listen", "0.0.0.0:0", status=1)
    assert "--certificate and --key, or --insecure" in " ".join(done.stderr.split())
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=localhost", "-keyout", tmp_path / "key", "-out", tmp_path / "certificate"],
        check=True, capture_output=True,
    )  # fmt: skip
    files = ("--certificate", str(tmp_path / "certificate"), "--key", str(tmp_path / "key"))
    with hub(tmp_path / "store", *files) as (_, port):
        context = ssl.create_default_context(cafile=str(tmp_path / "certificate"))
        with closing(http.client.HTTPSConnection("localhost", port, context=context)) as tls:
            tls.request("GET", "/health")
            assert tls.getresponse().read().startswith(b"deliveries 0\n")


def test_killed_at_any_moment_it_loses_nothing_that_it_answered(tmp_path: Path) -> None:
    """Sent again until it is answered, each window counts once."""
    chance, truth = random.Random(5), Truth()
    sent = messages(truth, hosts=KILLS, minutes=4)
    waiting = [gzip.compress(one.data) for one in sent]
    kills = 0
    while waiting:  # four at a time: all of them may be answered before the kill
        with hub(tmp_path) as (process, port):
            doomed = kills < KILLS
            ends = time.monotonic() + chance.uniform(0, 0.5)
            clients = [
                subprocess.Popen(
                    [sys.executable, "-c", _CLIENT, str(port), PATH],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                )
                for _ in waiting[:4]
            ]  # fmt: skip
            batch = waiting[:4]
            for client, data in zip(clients, batch, strict=True):
                assert client.stdin
                client.stdin.write(data)
                client.stdin.close()
            if doomed:
                time.sleep(max(0, ends - time.monotonic()))
                process.kill()
                kills += 1
            for client, data in zip(clients, batch, strict=True):
                assert client.stdout
                if client.stdout.read() == b"200":
                    waiting.remove(data)
                client.stdout.close()
                client.wait()
    assert kills == KILLS
    assert sums(tmp_path) == truth.service


_CLIENT = """
import http.client, sys
data = sys.stdin.buffer.read()
try:
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=30)
    headers = {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"}
    connection.request("POST", sys.argv[2], data, headers)
    print(connection.getresponse().status, end="")
except OSError:
    pass
except http.client.HTTPException:
    pass
"""


@pytest.mark.slow
def test_compaction_killed_at_any_moment(tmp_path: Path) -> None:
    chance, truth = random.Random(7), Truth()
    files = []
    for number, one in enumerate(messages(truth, hosts=3, minutes=5)):
        files.append(str(tmp_path / f"{number}.otlp"))
        Path(files[-1]).write_bytes(one.data)
    landed, store = tmp_path / "landed", tmp_path / "store"
    for part in range(3):
        fleet(landed, "import", *files[part::3])
    killed = []
    longest_s = 0.0
    for number in range(1 + KILLS):
        shutil.rmtree(store, ignore_errors=True)
        shutil.copytree(landed, store)
        words = [sys.executable, "-m", "purebpf", "fleet", "compact", "--store", str(store)]
        with subprocess.Popen(words, stderr=subprocess.DEVNULL, cwd=ROOT) as process:
            started = time.monotonic()
            with suppress(subprocess.TimeoutExpired):  # the first one is not killed
                process.wait(chance.uniform(0, longest_s) if number else None)
            killed.append(process.poll() is None)
            process.kill()
        longest_s = max(longest_s, time.monotonic() - started)
        assert sums(store) == truth.service
    assert any(killed), f"each of them ended before its time, at most {longest_s:.1f} s"
    fleet(store, "compact")
    assert sums(store) == truth.service
    fleet(store, "check")


def test_files_of_agents_and_profiles_are_imported(tmp_path: Path) -> None:
    truth = Truth()
    (one,) = messages(truth, hosts=1, minutes=1)
    (tmp_path / "a.otlp.gz").write_bytes(gzip.compress(one.data))
    folded = tmp_path / "b.folded"
    folded.write_text("shop;main;work 5\nshop;main 2\n")
    os.utime(folded, (HOUR_S + 600, HOUR_S + 600))
    done = fleet(
        tmp_path / "store", "import", str(tmp_path / "a.otlp.gz"), str(folded), "--host", "h9"
    )
    assert "2 windows stored" in done.stderr
    got = fleet(tmp_path / "store", "flamegraph", "--host", "h9", *RANGE).stdout
    assert [line.rsplit(" ", 1)[0] for line in got.splitlines()] == ["shop;main", "shop;main;work"]
    (tmp_path / "bad.otlp").write_bytes(b"\xff")
    done = fleet(tmp_path / "store", "import", str(tmp_path / "bad.otlp"), status=1)
    assert "1 bytes: not an OTLP profiles message" in " ".join(done.stderr.split())


def test_two_builds_compared(tmp_path: Path) -> None:
    from purebpf.results.formats.otlp import Entry, Sample
    from tests.support.host.deliveries import window_message

    names = {"ab12": (10, 90), "cd34": (30, 90)}
    files = []
    for minute, (build, (slow, fast)) in enumerate(names.items()):
        samples = {
            Sample("a", (Entry("slow", "shop", "user"),)): slow,
            Sample("a", (Entry("fast", "shop", "user"),)): fast,
        }
        more = (("service.version", build),)
        files.append(str(tmp_path / f"{build}.otlp"))
        Path(files[-1]).write_bytes(window_message("h", minute, {"shop": samples}, more=more))
    fleet(tmp_path / "store", "import", *files)
    sides = ("--a", "version=ab12", "--b", "build=cd34")
    said = fleet(tmp_path / "store", "diff", *sides, *RANGE).stdout
    assert re.search(r"10\.00 +25\.00 +\+15\.00  slow", said)
    fleet(tmp_path / "store", "diff", *sides, *RANGE, "--fail-over", "14", status=3)
    # ten samples a side are not enough to be sure of anything
    said = fleet(tmp_path / "store", "regressions", *sides, *RANGE, "--fail-over", "0").stdout
    assert "judged by how 1 and 1 windows differ" in said
    page = tmp_path / "diff.html"
    fleet(tmp_path / "store", "diff", *sides, *RANGE, "-o", str(page))
    assert "version=ab12" in page.read_text()


def test_a_statement_reads_only_the_store(tmp_path: Path) -> None:
    (one,) = messages(Truth(), hosts=1, minutes=1)
    (tmp_path / "a.otlp").write_bytes(one.data)
    store = tmp_path / "store"
    fleet(store, "import", str(tmp_path / "a.otlp"))
    for statement in (
        f"copy samples to '{tmp_path}/out.csv'",
        "select * from read_csv('/etc/passwd')",
        f"select * from read_text('{store}/../a.otlp')",
        "set enable_external_access = true",
        "select 1; select 2",
        "attach 'x.db'",
    ):
        fleet(store, "sql", statement, *RANGE, status=1)
    assert not (tmp_path / "out.csv").exists()
    statement = "select sum(value)::bigint from samples"
    shown = fleet(store, "sql", "--print", statement, *RANGE).stdout
    with duckdb.connect() as elsewhere:  # may be pasted into one's own
        ((total,),) = elsewhere.execute(shown).fetchall()
    assert str(total) == fleet(store, "sql", statement, *RANGE).stdout.split()[-1]
    assert store.stat().st_mode & 0o777 == 0o700


@pytest.mark.needs("bpf", "perf_event")
@pytest.mark.any_kernel
def test_from_an_agent_to_a_flame_graph(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with hub(store) as (_, port):
        configuration = tmp_path / "agent.toml"
        configuration.write_text(
            f"[agent]\nstate = '{tmp_path}/state'\nwindow_s = 2\njitter_s = 0\nbudget = 0.0\n"
            f"host = 'node1'\n[cpu]\nfrequency = 199\n[[sink]]\nname = 'hub'\ntype = 'otlp'\n"
            f"url = 'http://127.0.0.1:{port}'\n"
        )
        agent = [sys.executable, "-m", "purebpf", "agent", "--config", str(configuration), "--once"]
        busy = subprocess.Popen([sys.executable, "-c", "def spin():\n while True: pass\nspin()"])
        try:
            done = subprocess.run(
                agent, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=True
            )
        finally:
            busy.kill()
            busy.wait()
        assert "hub 0 waiting" in done.stderr
    out = tmp_path / "all.json"
    fleet(store, "flamegraph", "--since", "5m", "-o", str(out), "--host", "node1")
    counted = re.match(r"(\d+) samples", done.stderr)
    assert counted
    tree = json.loads(out.read_text())
    assert tree["unit"] == "ns"
    assert fleet(store, "top", "--since", "5m").stdout.count("spin [") == 1
    statement = "select sum(value // period)::bigint from samples"
    stored = fleet(store, "sql", statement, "--since", "5m").stdout.split()[-1]
    assert stored == counted[1]


def test_names_are_asked_of_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.joinpath("store").mkdir()
    monkeypatch.delenv("DEBUGINFOD_URLS", raising=False)
    done = fleet(tmp_path / "store", "symbolize", status=2)
    assert "DEBUGINFOD_URLS does not name an http server" in done.stderr
    monkeypatch.setenv("DEBUGINFOD_URLS", "http://127.0.0.1:9")
    done = fleet(tmp_path / "store", "symbolize")
    assert done.stderr.startswith("0 of 0 places without a name")
