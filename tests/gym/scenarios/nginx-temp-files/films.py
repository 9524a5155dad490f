import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FILM = bytes(20_000_000)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(FILM)))
        self.end_headers()
        self.wfile.write(FILM)

    def log_message(self, *args):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
