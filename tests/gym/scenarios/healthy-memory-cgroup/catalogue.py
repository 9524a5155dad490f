import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

catalogue = {n: f"item {n} " * 8 for n in range(100_000)}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = json.dumps([catalogue[n] for n in range(50)]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
