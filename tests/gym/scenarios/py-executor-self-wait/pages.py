import sys
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

pool = ThreadPoolExecutor(3, thread_name_prefix="pages")


def build_part():
    time.sleep(0.01)
    return b"part"


def build_page():
    time.sleep(0.02)
    return pool.submit(build_part).result()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = pool.submit(build_page).result()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
