"""Every second request finds it overloaded."""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

count = 0


class Inventory(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        global count
        count += 1
        self.send_response(503 if count % 4 else 200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"17")

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Inventory).serve_forever()
