"""Stock: a threaded HTTP service, with a pool for mails."""

import http.client
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

stock = {i: 1_000_000 for i in range(100)}
stock_lock = threading.Lock()
mails = ThreadPoolExecutor(8, thread_name_prefix="mail")


def ask_price(item):
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[2]))
    connection.request("GET", f"/price/{item}")
    price = float(connection.getresponse().read())
    connection.close()
    return price


def reserve_stock(item):
    with stock_lock:
        stock[item] -= 1
        return ask_price(item)  # while the lock is held


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        price = reserve_stock(int(self.path.rpartition("/")[2]) % 100)
        body = f"{price}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


for _ in range(8):
    mails.submit(len, "")  # its threads exist, and have nothing to do
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
