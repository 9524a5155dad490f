import socketserver
import sys
import time


class Sender(socketserver.BaseRequestHandler):
    def handle(self):
        while self.request.recv(16000):
            time.sleep(0.02)


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    allow_reuse_address = True


Server(("127.0.0.1", int(sys.argv[1])), Sender).serve_forever()
