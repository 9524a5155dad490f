"""`fleet serve` among clients without a token who mean harm."""

from __future__ import annotations

import http.client
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from tests.commands.fleet.test_hostile_clients import connect, few_files
from tests.support.environment import ROOT

pytestmark = pytest.mark.any_kernel

FORM = b"POST /enter HTTP/1.1\r\nHost: a\r\nContent-Length: 4000\r\n\r\ntoken="


@contextmanager
def pages(folder: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The server and its port."""
    (folder / "landing").mkdir()
    words = [sys.executable, "-m", "purebpf", "fleet", "serve", "--store", str(folder)]
    with subprocess.Popen(
        [*words, "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        try:
            assert process.stderr
            line = process.stderr.readline()
            found = re.search(r"http\S+:(\d+)/\?token=\S+", line)
            assert found, line + process.stderr.read()
            yield process, int(found[1])
        finally:
            process.terminate()


def status(port: int) -> int:
    """Of the page that asks for a token."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as client:
        client.request("GET", "/")
        return client.getresponse().status


def test_forms_that_do_not_end_shut_no_reader_out(tmp_path: Path) -> None:
    with ExitStack() as stack:
        with few_files(512):
            _, port = stack.enter_context(pages(tmp_path))
        for _ in range(600):
            stack.enter_context(connect(port, FORM))
        assert status(port) == 401


def test_a_form_that_does_not_end_has_its_time(tmp_path: Path) -> None:
    page = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    with pages(tmp_path) as (_, port), connect(port, FORM) as slow, connect(port, page) as asked:
        assert asked.recv(12) == b"HTTP/1.1 401"
        asked.sendall(FORM)
        assert slow.recv(1) == b""
        while asked.recv(1 << 16):
            pass


def test_who_leaves_in_the_middle_of_a_form_writes_nothing_to_the_log(tmp_path: Path) -> None:
    with pages(tmp_path) as (process, port):
        for _ in range(20):
            connect(port, FORM).close()
        time.sleep(0.5)
        assert status(port) == 401
        process.terminate()
        assert process.stderr
        assert process.stderr.read() == ""
        assert process.wait(60) == 0


def test_connections_without_descriptors_are_one_line_with_a_number(tmp_path: Path) -> None:
    with ExitStack() as stack:
        with few_files(64):
            process, port = stack.enter_context(pages(tmp_path))
        with ExitStack() as clients:
            for _ in range(300):
                clients.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
            assert process.stderr
            line = process.stderr.readline()
            assert re.search(r"accept\(2\) failed with EMFILE (once|\d+ times)", line), line
        assert status(port) == 401
        process.terminate()
        rest = process.stderr.read().splitlines()
        assert len(rest) <= 1, rest
        assert all("failed with EMFILE" in line for line in rest)
        assert process.wait(60) == 0
