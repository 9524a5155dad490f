"""Takes documents, each when it has time."""

import socket
import sys
import time

server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
server.bind(("127.0.0.1", int(sys.argv[1])))
server.listen(64)
while True:
    peer, _ = server.accept()
    time.sleep(0.4)
    while peer.recv(65536):
        pass
    peer.close()
