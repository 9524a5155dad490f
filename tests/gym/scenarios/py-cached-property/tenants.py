import functools
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Tenant:
    @functools.cached_property
    def settings(self):
        time.sleep(0.05)
        return {"theme": "dark"}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = Tenant().settings["theme"].encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 64


Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
