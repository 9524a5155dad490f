"""Payments: requests hand tasks to a pool of processes, and wait for them."""

import multiprocessing
import sys
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def charge_card(number):
    with urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[2]}/charge/{number}") as answer:
        return float(answer.read())


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        paid = workers.apply(charge_card, (self.path.rpartition("/")[2],))
        body = f"{paid}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


if __name__ == "__main__":
    workers = multiprocessing.Pool(4)
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
