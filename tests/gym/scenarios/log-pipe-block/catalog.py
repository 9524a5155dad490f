"""A catalog that says in its log what it does."""

import logging
import sys
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
log = logging.getLogger("catalog")
pool = ThreadPoolExecutor(4)


def describe(thing):
    for step in ("found", "translated", "priced", "rendered"):
        log.debug("%s %s with %s", thing, step, "x" * 300)
    return f"{thing}\n"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = describe(self.path).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


for _ in range(4):
    pool.submit(len, "")
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
