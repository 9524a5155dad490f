import queue
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

book_lock = threading.Lock()
trail = queue.Queue(maxsize=2)


def put_audit(path):
    with book_lock:
        for step in ("begin", path, "paid", "sent", "end"):
            trail.put(step)


def store_audit():
    while True:
        trail.get()
        with book_lock:
            time.sleep(0.002)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        put_audit(self.path)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args):
        pass


threading.Thread(target=store_audit, daemon=True).start()
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
