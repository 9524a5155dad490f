import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

client = httpx.Client(limits=httpx.Limits(max_connections=2), timeout=60, trust_env=False)


def ask_rate():
    return client.get(f"http://127.0.0.1:{sys.argv[2]}/rate").content


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = ask_rate()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
