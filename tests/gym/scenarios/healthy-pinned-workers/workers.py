import os
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"%d" % sum(range(20_000))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


server = HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
for number in range(4):
    if os.fork() == 0:
        os.sched_setaffinity(0, [sorted(os.sched_getaffinity(0))[number % 2 - 1]])
        server.serve_forever()
os.wait()
