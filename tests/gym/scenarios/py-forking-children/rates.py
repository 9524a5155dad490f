import http.client
import socketserver
import sys


def ask_rate():
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[2]))
    connection.request("GET", "/")
    return connection.getresponse().read()


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        while self.rfile.readline().strip():
            pass
        body = ask_rate()
        self.wfile.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


class Server(socketserver.ForkingMixIn, socketserver.TCPServer):
    max_children = 2
    allow_reuse_address = True
    request_queue_size = 64


Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
