"""Parcels: asks the carrier for each request, by name."""

import http.client
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def ask_carrier(path):
    connection = http.client.HTTPConnection("carrier.example", int(sys.argv[2]), timeout=5)
    connection.request("GET", path)
    text = connection.getresponse().read()
    connection.close()
    return text


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        try:
            body = ask_carrier(self.path)
        except OSError as error:
            body = f"{error}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
