"""Programs that live long and keep two CPUs busy: PostgreSQL with pgbench, a Python service, xz."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import ExitStack
from pathlib import Path

from running import start, start_postgres

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
_CLIENT = (
    "until pgbench -h {socket} -i -s 2 -q postgres; do sleep 1; done; "
    "exec pgbench -h {socket} -c 2 -T 1000000 -S postgres"
)
_NOISE_BYTES = 64 << 20
"""Takes xz most of a minute."""


def start_long_living(stack: ExitStack, folder: Path) -> list[str]:
    """Start them, until the stack ends; the names of those that are installed."""
    folder.chmod(0o755)
    (folder / "noise").write_bytes(os.urandom(1 << 20) * (_NOISE_BYTES >> 20))
    start(stack, [sys.executable, "-c", _SERVICE])
    start(stack, ["sh", "-c", f"while :; do xz -9 -k -c {folder}/noise >/dev/null; done"])
    names = ["python", "xz"]
    if shutil.which("pgbench") and start_postgres(stack, folder, _CLIENT):
        names.append("postgres")
    return names
