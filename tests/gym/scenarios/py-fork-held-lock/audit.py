import os
import socketserver
import sys
import threading
import time

audit = threading.Lock()


def flush_audit():
    while True:
        with audit:
            time.sleep(0.2)
        time.sleep(0.001)


def write_audit(text):
    with audit:
        return len(text)


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        while self.rfile.readline():
            while self.rfile.readline() not in (b"\r\n", b""):
                pass
            write_audit("request")
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


class Server(socketserver.ForkingTCPServer):
    allow_reuse_address = True
    max_children = 200


threading.Thread(target=flush_audit, daemon=True).start()
Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
