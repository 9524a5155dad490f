import socketserver
import sys
import time


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            time.sleep(float(sys.argv[2]))
            self.wfile.write(b"name-of-" + line.split()[-1] + b"\n")


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
