"""Search: requests in threads, and an index that a thread rebuilds all the time."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

words = [f"word{i % 4099}" for i in range(20000)]
index = {}
pool = ThreadPoolExecutor(4, thread_name_prefix="mail")


def rebuild_index():
    global index
    while True:
        fresh = {}
        for place, word in enumerate(words):
            fresh.setdefault(word, []).append(place)
        index = fresh


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = str(len(index.get("word7", ()))).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


for _ in range(4):
    pool.submit(len, "")
threading.Thread(target=rebuild_index, name="index", daemon=True).start()
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
