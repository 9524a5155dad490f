import socketserver
import sys
import time


def find_session():
    time.sleep(0.08)
    return b"anna"


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        while self.rfile.readline().strip():
            pass
        body = find_session()
        self.wfile.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


class Server(socketserver.UnixStreamServer):
    request_queue_size = 64


Server(sys.argv[1], Handler).serve_forever()
