"""Spark as a master and two workers, as a cluster is: answers as DuckDB gives, or an error."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from purebpf.services.fleet import duck
from purebpf.services.fleet.engines.engine import open_engine
from purebpf.services.fleet.stores.store import Store
from purebpf.syscall import proc
from tests.support.host.landed import answers, fill

pytest.importorskip("pyspark", reason="pyspark is not installed")

_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_REGISTERED = "Successfully registered with master"
_WAIT_S = 1200
"""Ends a test that hangs. A worker tries to register for up to 15 minutes, and then ends itself."""


class Cluster:
    """A master and two workers of one CPU each, in sessions of their own."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        spec = find_spec("pyspark")
        assert spec is not None
        assert spec.origin is not None
        self._home = Path(spec.origin).parent
        self._folder = folder
        self._stack = stack
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            port = unused.getsockname()[1]
        self.address = f"spark://127.0.0.1:{port}"
        self._start("master", _MASTER, "--port", str(port), said="I have been elected leader")
        self.workers = [
            self._start(name, _WORKER, "-c", "1", "-m", "1g", self.address, said=_REGISTERED)
            for name in ("worker1", "worker2")
        ]

    def _start(self, name: str, program: str, *words: str, said: str) -> int:
        log = self._folder / f"{name}.log"
        work = self._folder / name
        command = [self._home / "bin/spark-class", program, "--host", "127.0.0.1"]
        environment = {
            **os.environ,
            "SPARK_HOME": str(self._home),
            "SPARK_WORKER_DIR": str(work),
            "SPARK_LOCAL_DIRS": str(work),
        }
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*command, "--webui-port", "0", *words],
                stdout=output,
                stderr=output,
                start_new_session=True,
                env=environment,
            )
        self._stack.callback(process.wait)
        self._stack.callback(kill, process.pid)
        end = time.monotonic() + _WAIT_S
        while said not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.1)
        return process.pid


def kill(group: int) -> None:
    """A worker and the executors that it started."""
    for pid in proc.pids():
        with suppress(ProcessLookupError):
            if os.getsid(pid) == group:
                os.kill(pid, signal.SIGKILL)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    with ExitStack() as stack:
        yield Cluster(tmp_path, stack)


def test_a_worker_is_killed_in_the_middle_of_a_query(cluster: Cluster, store: Store) -> None:
    """Two answer as DuckDB does. Then what is answered is right, or an error, and one goes on."""
    fill(store)
    expected = answers(store)
    given: list[object] = []
    errors: list[str] = []
    is_over = threading.Event()
    with closing(open_engine(cluster.address)) as engine:

        def go_on() -> None:
            while not is_over.is_set():
                try:
                    given.append(answers(store, engine))
                except duck.QueryError as error:
                    errors.append(str(error))

        assert answers(store, engine) == expected
        asking = threading.Thread(target=go_on)
        asking.start()
        time.sleep(0.5)
        kill(cluster.workers[0])
        before = len(given)
        end = time.monotonic() + _WAIT_S
        while len(given) < before + 3 and time.monotonic() < end:
            time.sleep(0.1)
        is_over.set()
        asking.join()
    assert len(given) >= before + 3, errors
    assert all(answer == expected for answer in given)
    assert all(errors)
