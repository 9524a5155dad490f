import socket
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Cache:
    def __init__(self):
        self.sock = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def get(self, key):
        self.sock.sendall(f"*2\r\n$3\r\nGET\r\n${len(key)}\r\n{key}\r\n".encode())
        return self.sock.recv(4096)


def price_list(cache):
    return sum(len(cache.get(f"price:{number}")) for number in range(400))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if not hasattr(self.server, "caches"):
            self.server.caches = {}
        cache = self.server.caches.setdefault(self.client_address, None) or Cache()
        self.server.caches[self.client_address] = cache
        body = str(price_list(cache)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
