import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def run_hook():
    return subprocess.run(["sh", "hook.sh"], stdout=subprocess.PIPE, check=False).stdout


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = run_hook()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
