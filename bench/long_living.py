"""Programs that live long and keep two CPUs busy: PostgreSQL with pgbench, a Python service, xz."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

__all__ = ["start_long_living"]

_SERVICE = r"""
import json, sys, threading, urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        rows = [{"id": at, "name": str(at) * 3} for at in range(200)]
        body = json.dumps(sorted(rows, key=lambda row: row["name"])).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *words):
        pass
server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
threading.Thread(target=server.serve_forever, daemon=True).start()
while True:
    urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/").read()
"""
_NOISE_BYTES = 64 << 20
"""Takes xz most of a minute."""


def start_long_living(stack: ExitStack, folder: Path) -> list[str]:
    """Start them, until the stack ends; the names of those that are installed."""
    folder.chmod(0o755)
    (folder / "noise").write_bytes(os.urandom(1 << 20) * (_NOISE_BYTES >> 20))
    _start(stack, [sys.executable, "-c", _SERVICE])
    _start(stack, ["sh", "-c", f"while :; do xz -9 -k -c {folder}/noise >/dev/null; done"])
    names = ["python", "xz"]
    if _postgres(stack, folder):
        names.append("postgres")
    return names


def _postgres(stack: ExitStack, folder: Path) -> bool:
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not programs or not shutil.which("pgbench"):
        return False
    place, data = programs[-1], folder / "data"
    data.mkdir()
    shutil.chown(data, "postgres")
    who: dict[str, Any] = {"user": "postgres", "group": "postgres", "cwd": data, "extra_groups": []}
    subprocess.run(
        [place / "initdb", "-A", "trust", "-D", data], check=True, capture_output=True, **who
    )
    settings = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={data}"]
    _start(stack, [str(place / "postgres"), "-D", str(data), *settings], **who)
    client = f"pgbench -h {data}"
    until_up = f"until {client} -i -s 2 -q postgres; do sleep 1; done"
    _start(stack, ["sh", "-c", f"{until_up}; exec {client} -c 2 -T 1000000 -S postgres"], **who)
    return True


def _start(stack: ExitStack, command: list[str], **options: Any) -> None:
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        **options,
    )
    stack.callback(_stop, child)


def _stop(child: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child.pid, 9)
    child.wait()
