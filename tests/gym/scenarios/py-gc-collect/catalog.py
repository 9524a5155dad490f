import gc
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

items = [{"name": str(n), "tags": [n, n + 1]} for n in range(400_000)]


def answer_query():
    gc.collect()
    return b"%d items" % len(items)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        text = answer_query()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *words):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
