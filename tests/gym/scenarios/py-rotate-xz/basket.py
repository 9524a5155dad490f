import logging
import logging.handlers
import lzma
import os
import shutil
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def compress_old_log(source, target):
    with open(source, "rb") as old, lzma.open(target, "wb", preset=6) as new:
        shutil.copyfileobj(old, new)
    os.remove(source)


handler = logging.handlers.RotatingFileHandler(sys.argv[2], maxBytes=int(sys.argv[3]), backupCount=5)
handler.rotator = compress_old_log
handler.namer = lambda name: name + ".xz"
log = logging.getLogger("access")
log.addHandler(handler)
log.setLevel(logging.INFO)


def answer_basket(path):
    basket = [{"item": n, "price": n * 7 % 93, "text": f"{n * 2654435761 % 1000003:x}" * 40} for n in range(60)]
    total = sum(line["price"] for line in basket)
    log.info("%s basket=%s total=%s", path, basket, total)
    return str(total).encode()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = answer_basket(self.path)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
