import queue
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

lock, jobs, seen = threading.Lock(), queue.Queue(), {}
log = open(sys.argv[2], "a")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16

    def do_GET(self):
        with lock:
            seen[self.path[:2]] = seen.get(self.path[:2], 0) + 1
        jobs.put(self.path)
        log.write(self.path + "\n")
        log.flush()
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *args):
        pass


def work():
    while True:
        jobs.get()
        time.sleep(0.001)


for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
