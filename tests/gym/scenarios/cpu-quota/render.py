"""Pages: 10 ms of work each."""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def render_page(number):
    rows = [f"<tr><td>{i}</td><td>{i * number % 97}</td></tr>" for i in range(16000)]
    return "".join(rows)[:2000]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = render_page(int(self.path.rpartition("/")[2])).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
