import json
import multiprocessing
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TEXT = json.dumps({str(n): [n * 0.1, n * 0.2] for n in range(30000)})
weights = {}


def load_model():
    weights.update(json.loads(TEXT))


def score(number):
    return sum(weights[str(number)])


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = str(pool.apply(score, (17,))).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


if __name__ == "__main__":
    pool = multiprocessing.Pool(3, initializer=load_model, maxtasksperchild=1)
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
