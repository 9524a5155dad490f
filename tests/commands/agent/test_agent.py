"""The agent as it runs: windows in the spool and at a store, signals, a second one, kill -9."""

from __future__ import annotations

import gzip
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import (
    ExportProfilesServiceRequest,
)

from purebpf.results.formats.otlp_reader import ServiceProfile, read_document
from purebpf.symbols.file_ids import hash_of_ends
from tests.commands.conftest import ROOT, Workloads
from tests.support.host.faults import slow_host
from tests.support.host.http_sink import HttpSink, serving

pytestmark = [pytest.mark.needs("bpf", "perf_event", "gcc"), pytest.mark.any_kernel]

PATIENCE_S = 240 if slow_host() else 90
IDENTIFIERS = "process.executable.build_id"
BY_FRAME_POINTERS = "[cpu]\ncall_graph = 'fp'\npython = false\n"
"""What starts soonest, for what is not about stacks."""


def configuration(tmp_path: Path, sink: str, *, more: str = "", window_s: float = 1) -> str:
    path = tmp_path / "agent.toml"
    path.write_text(
        f"[agent]\nstate = '{tmp_path}/state'\nwindow_s = {window_s}\njitter_s = 0\nbudget = 0.0\n"
        f"host = 'node1'\n{more}\n[[sink]]\nname = 'store'\n{sink}\n"
    )
    return str(path)


def to_directory(tmp_path: Path, **options: object) -> str:
    return configuration(tmp_path, f"type = 'dir'\npath = '{tmp_path}/out'", **options)  # type: ignore[arg-type]


def to_store(tmp_path: Path, url: str) -> str:
    return configuration(tmp_path, f"type = 'otlp'\nurl = '{url}'", more=BY_FRAME_POINTERS)


@contextmanager
def agent(*arguments: str, prefix: tuple[str, ...] = ()) -> Iterator[subprocess.Popen[str]]:
    """An agent, which is ended with all that it started."""
    words = [*prefix, sys.executable, "-m", "purebpf", "agent", *arguments]
    with subprocess.Popen(
        words, stderr=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def until(condition: Callable[[], object], process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)


def end(process: subprocess.Popen[str]) -> str:
    process.send_signal(signal.SIGTERM)
    errors = process.communicate(timeout=PATIENCE_S)[1]
    assert process.returncode == 0, errors
    return errors


def files(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "out").rglob("*.otlp.gz"), key=lambda path: path.name)


def profiles(path: Path) -> list[ServiceProfile]:
    return read_document(gzip.decompress(path.read_bytes()))


def identifiers(path: Path, name: str) -> dict[str, str]:
    """The attributes of the mapping of a file, as OpenTelemetry's own package reads them."""
    message = ExportProfilesServiceRequest.FromString(gzip.decompress(path.read_bytes()))
    tables = message.dictionary
    (mapping,) = [
        each for each in tables.mapping_table if tables.string_table[each.filename_strindex] == name
    ]
    attributes = [tables.attribute_table[at] for at in mapping.attribute_indices]
    return {tables.string_table[each.key_strindex]: each.value.string_value for each in attributes}


def fact(profile: ServiceProfile, name: str) -> int:
    value = dict(profile.window.facts)[f"purebpf.{name}"]
    assert isinstance(value, int)
    return value


def test_once_writes_and_sends_exactly_what_was_counted(
    workloads: Workloads, tmp_path: Path
) -> None:
    more = "[wait]\nenabled = true\n[labels]\nenv = 'test'\n[cpu]\nfrequency = 199"
    path = to_directory(tmp_path, more=more, window_s=2)
    with workloads.running("split"), agent("--config", path, "--once") as process:
        errors = process.communicate(timeout=PATIENCE_S)[1]
    assert process.returncode == 0, errors
    assert "store 0 waiting" in errors
    by_kind = {file.name.split("-")[1]: file for file in files(tmp_path)}
    assert {*by_kind} == {"cpu", "offcpu", "runqueue"}
    services = profiles(by_kind["cpu"])
    samples = sum(sum(each.series.samples.values()) for each in services)
    first = services[0]
    assert samples == fact(first, "counted")
    assert samples > 0
    assert (first.window.type, first.window.unit) == ("samples", "count")
    assert first.window.period_ns == round(1e9 / 199)
    assert {fact(each, "counted") for each in services} == {samples}, "each service says it"
    resources = [dict(each.series.resource) for each in services]
    assert {resource["env"] for resource in resources} == {"test"}
    assert {resource["host.name"] for resource in resources} == {"node1"}
    stacks = [sample for each in services for sample in each.series.samples]
    mine = [sample.stack for sample in stacks if sample.comm == "split"]
    assert any(entry.name == "spend_seventy" for stack in mine for entry in stack)
    program = Path(workloads.path("split")).read_bytes()
    expected = hash_of_ends(lambda offset, size: program[offset : offset + size], len(program))
    assert identifiers(by_kind["cpu"], "split")[f"{IDENTIFIERS}.htlhash"] == expected
    for kind, name in (("offcpu", "off_cpu"), ("runqueue", "run_queue")):
        (window, _), *_ = profiles(by_kind[kind])
        assert (window.type, window.unit) == (name, "nanoseconds")
    assert not [*(tmp_path / "state" / "spool" / "store").iterdir()]


def test_an_agent_heeds_signals_and_refuses_a_second_one(tmp_path: Path) -> None:
    path = to_directory(tmp_path, more=f"{BY_FRAME_POINTERS}burst_frequency = 97")
    with agent("--config", path) as process:
        until(lambda: files(tmp_path), process)
        with agent("--config", path, "--once") as second:
            refusal = second.communicate(timeout=PATIENCE_S)[1]
        assert second.returncode == 1
        assert "another agent runs on this host" in refusal
        assert f"process {process.pid}" in refusal
        assert "purebpf agent" in refusal
        process.send_signal(signal.SIGUSR1)
        until(lambda: fact(profiles(files(tmp_path)[-1])[0], "frequency_hz") == 97, process)
        good = Path(path).read_text()
        Path(path).write_text("[agent]\nwindows = 5")
        process.send_signal(signal.SIGHUP)
        before = len(files(tmp_path))
        until(lambda: len(files(tmp_path)) > before + 1, process)
        Path(path).write_text(good + "[labels]\nround = 'two'\n")
        process.send_signal(signal.SIGHUP)
        until(lambda: dict(profiles(files(tmp_path)[-1])[0].series.resource).get("round"), process)
        process.kill()
        errors = " ".join(process.communicate()[1].split())
    assert all(map(profiles, files(tmp_path))), "killed, it leaves whole files"
    assert fact(profiles(files(tmp_path)[0])[0], "frequency_hz") == 19
    assert "burst: 97 Hz" in errors
    assert "unknown key in [agent]: 'windows'" in errors
    assert "goes on as before" in errors
    assert "is read again" in errors


def test_a_killed_agent_leaves_whole_windows_for_a_store_that_was_away(tmp_path: Path) -> None:
    """Killed at any moment, with all windows in the spool; then the store refuses some, too."""
    spool = tmp_path / "state" / "spool" / "store"
    with agent("--config", to_store(tmp_path, "http://127.0.0.1:9")) as process:
        until(lambda: len([*spool.glob("*")]) > 1, process)
        time.sleep(random.Random(5).random())
        process.kill()
    assert all(map(profiles, spool.iterdir()))
    waiting = {file.name for file in spool.iterdir()}
    assert len(waiting) >= 2
    with serving() as store:
        store.answers = [(503, {}), (0, {})]
        with agent("--config", to_store(tmp_path, store.url), "-v") as process:
            until(lambda: len(delivered(store)) > 2 and waiting <= delivered(store), process)
            errors = end(process)
    assert "HTTP 503" in errors
    assert not waiting & {file.name for file in spool.iterdir()}
    assert len(store.received) >= len(delivered(store)) + 2, "those two came again"
    bodies = {request.body for request in store.received}
    windows = [read_document(gzip.decompress(body))[0].window for body in bodies]
    assert len({window.identity for window in windows}) == len(windows) == len(delivered(store))
    ends = sorted(window.started_ns + window.duration_ns for window in windows)
    assert any(end % 10**9 < 10**9 // 2 for end in ends), "on the second, if there is time"


def delivered(store: HttpSink) -> set[str]:
    return {request.headers["X-Purebpf-Delivery"] for request in store.received}


FULL = """
set -e
mount -t tmpfs -o size=64k none "$1"
head -c 53248 /dev/zero > "$1/ballast"
shift
exec "$@"
"""


@pytest.mark.needs("mount_namespace", "unshare")
def test_a_full_disk_loses_windows_and_not_the_agent(tmp_path: Path) -> None:
    """On a disk of its own with room for a few windows, a second each."""
    state = tmp_path / "state"
    state.mkdir()
    path = to_store(tmp_path, "http://127.0.0.1:9")
    prefix = ("unshare", "--mount", "sh", "-c", FULL, "sh", str(state))
    with agent("--config", path, "-v", prefix=prefix) as process:
        spool = Path(f"/proc/{process.pid}/root{state}/spool/store")
        dropped = 0

        def has_dropped() -> bool:
            nonlocal dropped
            for file in sorted(spool.glob("*"))[-1:]:
                dropped = fact(profiles(file)[0], "dropped_windows")
            return dropped > 1

        until(has_dropped, process)
        errors = end(process)
    assert "Traceback" not in errors


def test_the_configuration_is_checked(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "purebpf", "agent", "--check", "--config"]
    path = to_directory(tmp_path)
    done = subprocess.run([*words, path], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0
    assert f"sink store: dir {tmp_path}/out" in done.stdout
    Path(path).write_text("[cpu]\nfrequency = 0")
    done = subprocess.run([*words, path], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 1
    assert "expected 1 to 999" in done.stderr
    done = subprocess.run([*words, "/no"], capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, "No such file" in done.stderr) == (1, True)
