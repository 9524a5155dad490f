import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from profiles import Profiles

profiles = Profiles(sys.argv[2])


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        user = self.path.rpartition("/")[2]
        for part in ("name", "mail", "town", "street", "phone", "born"):
            profiles.change(f"{user[-2:]}.{part}", "x" * 40)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
