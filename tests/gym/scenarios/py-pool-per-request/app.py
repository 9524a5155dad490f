import multiprocessing
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def weigh(number):
    return number * number


def weigh_all():
    with multiprocessing.get_context("fork").Pool(4) as pool:
        return sum(pool.map(weigh, range(8)))


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = str(weigh_all()).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
