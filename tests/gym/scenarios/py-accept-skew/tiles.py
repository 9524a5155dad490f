import os
import socket
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def render_tile():
    return sum(n * n for n in range(300_000))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = b"%d" % render_tile()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    def server_bind(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        super().server_bind()


for number in range(4):
    if os.fork() == 0:
        time.sleep(2 if number else 0)
        Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
os.wait()
