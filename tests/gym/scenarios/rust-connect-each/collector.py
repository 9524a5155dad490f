import socketserver
import sys


class Sink(socketserver.BaseRequestHandler):
    def handle(self):
        while self.request.recv(4096):
            pass


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    request_queue_size = 128


Server(("127.0.0.1", int(sys.argv[1])), Sink).serve_forever()
