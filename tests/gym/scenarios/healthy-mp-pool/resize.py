import multiprocessing
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def resize(number):
    return sum(n * n for n in range(20000 + number))


class Resize(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = str(pool.apply(resize, (threading.active_count(),))).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


if __name__ == "__main__":
    pool = multiprocessing.Pool(4)
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Resize).serve_forever()
