import socketserver
import sys
import time


def find_settings(site):
    time.sleep(0.1)
    return b"theme=dark\n"


class Session(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(find_settings(self.rfile.readline()))


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    request_queue_size = 64


Server(sys.argv[1], Session).serve_forever()
