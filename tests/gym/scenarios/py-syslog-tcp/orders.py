import logging.handlers
import socket
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

log = logging.getLogger("orders")
log.addHandler(logging.handlers.SysLogHandler(("127.0.0.1", int(sys.argv[2])), socktype=socket.SOCK_STREAM))


def log_order(number):
    log.warning("order %s %s", number, "item " * 8000)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        log_order(7)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 64


Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
