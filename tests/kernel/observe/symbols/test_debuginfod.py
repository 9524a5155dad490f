"""Debug files from a server: elfutils' own where it is there, and one that misbehaves."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from purebpf.cli.source_info import NoServersError, debuginfod
from purebpf.observe.symbols.debuginfod import Debuginfod
from purebpf.observe.symbols.symbolizer import Symbolizer
from purebpf.symbols.elf_image import ElfImage
from purebpf.symbols.frame import is_unnamed_function
from tests.kernel.symbol_programs import compile_program, running

_PATIENCE_S = 30


class Stripped:
    """A stripped program, and its debug file beside it where nothing looks."""

    def __init__(self, folder: Path) -> None:
        self.program = compile_program(folder / "program", "-g", "-Wl,--build-id=sha1")
        self.debug = folder / "store" / "program.debug"
        self.debug.parent.mkdir()
        subprocess.run(["objcopy", "--only-keep-debug", self.program, self.debug], check=True)
        subprocess.run(["strip", self.program], check=True)
        self.build_id = ElfImage.of_bytes(self.program.read_bytes()).build_id


@pytest.fixture
def stripped(tmp_path) -> Stripped:
    return Stripped(tmp_path)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    for name in ("DEBUGINFOD_CACHE_PATH", "DEBUGINFOD_TIMEOUT", "DEBUGINFOD_MAXSIZE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "debuginfod_client"


Serve = Callable[[BaseHTTPRequestHandler], None]


@pytest.fixture
def serve() -> Iterator[Callable[[Serve], str]]:
    """Starts a server that answers as asked for; its URL. `asked` has the paths."""
    servers: list[ThreadingHTTPServer] = []

    def start(answer: Serve) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                answer(self)

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.05,)).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}/"

    asked: list[str] = []
    start.asked = asked
    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def _file(content: bytes, length: int | None = None) -> Serve:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", str(len(content) if length is None else length))
        request.end_headers()
        request.wfile.write(content)

    return answer


def _named(stripped: Stripped, fetch: Debuginfod | None) -> list[object]:
    with running(stripped.program) as child:
        found = Symbolizer(fetch=fetch).user(child.pid, child.functions.values())
    return [UNNAMED if is_unnamed_function(each) else each.name for each in found]


UNNAMED = "a function without a symbol"
_NAMES = ["local_function", "global_function", "main"]


@pytest.mark.needs("gcc", "objcopy")
def test_names_come_from_a_server_once_and_then_from_the_cache(stripped, serve, cache):
    fetch = Debuginfod([serve(_file(stripped.debug.read_bytes()))])
    assert _named(stripped, fetch) == _NAMES
    assert _named(stripped, fetch) == _NAMES
    assert serve.asked.count(f"/buildid/{stripped.build_id}/debuginfo") == 1
    kept = cache / stripped.build_id / "debuginfo"
    assert kept.read_bytes() == stripped.debug.read_bytes()
    assert os.listdir(kept.parent) == ["debuginfo"]
    assert not fetch.problems


@pytest.mark.needs("gcc", "objcopy")
def test_the_program_itself_is_kept_beside_its_debug_file(stripped, serve, cache):
    fetch = Debuginfod([serve(_file(stripped.program.read_bytes()))])
    path = fetch.executable(stripped.build_id)
    assert path == str(cache / stripped.build_id / "executable")
    assert fetch.executable(stripped.build_id) == path
    assert serve.asked == [f"/buildid/{stripped.build_id}/executable"]
    assert not fetch.problems


@pytest.mark.needs("gcc", "objcopy")
def test_nothing_is_asked_unless_the_user_wants_it(stripped, serve, monkeypatch):
    monkeypatch.setenv("DEBUGINFOD_URLS", serve(_file(b"")))
    assert debuginfod(wanted=False) is None
    assert _named(stripped, None)[0] == UNNAMED
    assert not serve.asked


def test_a_wish_without_servers_is_refused(monkeypatch):
    monkeypatch.setenv("DEBUGINFOD_URLS", "ftp://x file:///etc")
    with pytest.raises(NoServersError, match="DEBUGINFOD_URLS does not name an http server"):
        debuginfod(wanted=True)


@pytest.mark.needs("gcc", "objcopy")
def test_that_no_server_has_it_is_remembered_for_a_while(stripped, serve, cache):
    url = serve(lambda request: request.send_error(404))
    assert _named(stripped, Debuginfod([url]))[0] == UNNAMED
    asked = len(serve.asked)
    assert Debuginfod([url])(stripped.build_id) is None
    assert len(serve.asked) == asked
    missed = cache / stripped.build_id / "debuginfo"
    assert missed.stat().st_size == 0
    os.utime(missed, (1, 1))
    right = serve(_file(stripped.debug.read_bytes()))
    assert _named(stripped, Debuginfod([url, right])) == _NAMES


@pytest.mark.needs("gcc", "objcopy")
@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (_file(b"no ELF file"), "wrong magic"),
        (_file(b"\x7fELF", 1000), "got 4 bytes of 1000"),
        (lambda request: request.send_error(500), "HTTP status 500"),
        (lambda request: request.wfile.write(b"nonsense\r\n\r\n"), "nonsense"),
        (lambda request: request.connection.shutdown(socket.SHUT_RDWR), "closed connection"),
    ],
)
def test_a_server_that_misbehaves_is_left_and_the_next_one_asked(
    stripped, serve, cache, answer, problem
):
    wrong = serve(answer)
    fetch = Debuginfod([wrong])
    assert _named(stripped, fetch)[0] == UNNAMED
    assert len(fetch.problems) == 1
    assert problem in fetch.problems[0]
    assert not os.listdir(cache / stripped.build_id)
    assert fetch("ab" * 20) is None
    assert len(serve.asked) == 1
    right = serve(_file(stripped.debug.read_bytes()))
    assert _named(stripped, Debuginfod([wrong, right])) == _NAMES


@pytest.mark.needs("gcc", "objcopy")
def test_another_file_than_the_one_asked_for_is_not_kept(stripped, serve, cache, tmp_path):
    other = compile_program(tmp_path / "other", "-DOTHER", "-Wl,--build-id=0xabcdef0123")
    fetch = Debuginfod([serve(_file(other.read_bytes()))])
    assert _named(stripped, fetch)[0] == UNNAMED
    assert "another build ID" in fetch.problems[0]
    assert not os.listdir(cache / stripped.build_id)


@pytest.mark.needs("gcc", "objcopy")
def test_what_is_too_large_is_not_downloaded_to_its_end(stripped, serve, monkeypatch):
    monkeypatch.setenv("DEBUGINFOD_MAXSIZE", "1000")
    fetch = Debuginfod([serve(_file(stripped.debug.read_bytes()))])
    assert _named(stripped, fetch)[0] == UNNAMED
    assert "more than 1000 bytes" in fetch.problems[0]


def test_a_server_that_is_silent_is_left(serve, monkeypatch):
    over = threading.Event()
    monkeypatch.setenv("DEBUGINFOD_TIMEOUT", "1")
    fetch = Debuginfod([serve(lambda _: over.wait(_PATIENCE_S) and None)])
    try:
        assert fetch("ab" * 20) is None
    finally:
        over.set()
    assert "timed out" in fetch.problems[0]


def _drip(over: threading.Event) -> Serve:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        while not over.wait(0.1):
            try:
                request.wfile.write(b"x")
            except OSError:
                return

    return answer


def test_a_server_that_drips_is_left_when_the_time_is_over(serve, monkeypatch):
    over = threading.Event()
    monkeypatch.setenv("DEBUGINFOD_MAXTIME", "1")
    fetch = Debuginfod([serve(_drip(over))])
    try:
        assert fetch("ab" * 20) is None
    finally:
        over.set()
    assert "time limit for downloads is reached" in fetch.problems[0]
    assert fetch("cd" * 20) is None


def _drip_headers(over: threading.Event) -> Serve:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(b"HTTP/1.0 200 OK\r\nX-Slow: ")
        while not over.wait(0.1):
            try:
                request.wfile.write(b"x")
            except OSError:
                return

    return answer


def test_a_server_that_drips_its_headers_is_left_when_the_time_is_over(serve, monkeypatch):
    over = threading.Event()
    monkeypatch.setenv("DEBUGINFOD_MAXTIME", "1")
    fetch = Debuginfod([serve(_drip_headers(over))])
    begun = time.monotonic()
    try:
        assert fetch("ab" * 20) is None
    finally:
        over.set()
    assert time.monotonic() - begun < 10
    assert "time limit for downloads is reached" in fetch.problems[0]


def _redirect(to: str) -> Serve:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(302)
        request.send_header("Location", to)
        request.end_headers()

    return answer


@pytest.mark.parametrize("to", ["ftp://localhost/file", "file:///etc/passwd", "data:,x"])
def test_a_redirection_to_another_protocol_is_not_followed(serve, to):
    fetch = Debuginfod([serve(_redirect(to))])
    assert fetch("ab" * 20) is None
    refused = "redirected from http to ftp"  # urllib itself knows the others
    assert (refused if to.startswith("ftp") else "HTTP status 302") in fetch.problems[0]


@pytest.mark.needs("gcc", "objcopy")
def test_a_redirection_to_another_server_is_followed(stripped, serve):
    behind = serve(_file(stripped.debug.read_bytes()))
    fetch = Debuginfod([serve(_redirect(f"{behind}file"))])
    assert _named(stripped, fetch) == _NAMES
    assert serve.asked[-1] == "/file"


def test_what_a_server_says_moves_no_cursor(serve, capsys):
    hostile = b"\x1b]0;owned\x07\x1b[2J"
    fetch = Debuginfod([serve(lambda request: request.wfile.write(hostile + b"\r\n\r\n"))])
    assert fetch("ab" * 20) is None
    assert "owned" in fetch.problems[0]
    assert fetch.problems[0].isprintable()


@pytest.mark.needs("gcc", "objcopy")
def test_a_cache_that_others_can_write_to_is_not_used(stripped, serve, cache):
    folder = cache / stripped.build_id
    folder.mkdir(parents=True)
    (folder / "debuginfo").write_bytes(stripped.debug.read_bytes())
    folder.chmod(0o777)
    fetch = Debuginfod([serve(_file(b""))])
    assert _named(stripped, fetch)[0] == UNNAMED
    assert "other users can write to" in fetch.problems[0]
    assert not serve.asked


@pytest.mark.needs("gcc", "objcopy", "debuginfod-find")
def test_elfutils_reads_what_we_keep_and_we_what_it_keeps(stripped, serve, cache, monkeypatch):
    url = serve(_file(stripped.debug.read_bytes()))
    monkeypatch.setenv("DEBUGINFOD_URLS", url)
    command = ["debuginfod-find", "debuginfo", stripped.build_id]
    assert Debuginfod([url])(stripped.build_id) is not None
    theirs = subprocess.run(command, capture_output=True, text=True, check=True)
    assert Path(theirs.stdout.strip()) == cache / stripped.build_id / "debuginfo"
    assert len(serve.asked) == 1
    (cache / stripped.build_id / "debuginfo").unlink()
    subprocess.run(command, capture_output=True, check=True)
    assert len(serve.asked) == 2
    assert _named(stripped, Debuginfod([url])) == _NAMES
    assert len([path for path in serve.asked if stripped.build_id in path]) == 2


@pytest.mark.needs("gcc", "objcopy", "debuginfod")
def test_a_real_server(stripped, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    store = str(stripped.debug.parent)
    command = ["debuginfod", "-d", str(tmp_path / "index"), "-p", str(port), "-F", "-v", store]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            url = f"http://127.0.0.1:{port}"
            end = time.monotonic() + _PATIENCE_S
            path = None
            while path is None and time.monotonic() < end:
                for missed in tmp_path.glob("cache/debuginfod_client/*/debuginfo"):
                    missed.unlink()  # it was asked before it had looked at its files
                path = Debuginfod([url])(stripped.build_id)
                time.sleep(0.1)
            assert path is not None
            assert _named(stripped, Debuginfod([url])) == _NAMES
        finally:
            server.terminate()
