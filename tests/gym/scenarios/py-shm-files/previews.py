import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FOLDER = sys.argv[2]


def save_preview(name):
    pixels = os.urandom(4096) * 100
    with open(f"{FOLDER}/{name}.png", "wb") as file:
        file.write(pixels)
    return len(pixels)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = str(save_preview(self.path.strip("/"))).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
