import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STORE = sys.argv[2]


def shrink_image(number):
    with open(f"{STORE}/image-{number % 12}", "rb", buffering=0) as image:
        total = 0
        while block := image.read(1 << 20):
            total += block[0]
    return str(total)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = shrink_image(int(self.path[1:] or 0)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
