import http.client
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

session_lock = threading.Lock()


def load_session():
    with session_lock:
        connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[2]))
        connection.request("GET", "/")
        connection.getresponse().read()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        load_session()
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *args):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
