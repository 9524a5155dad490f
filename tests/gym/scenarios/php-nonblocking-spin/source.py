"""Sends a line now and then."""

import socket
import sys
import threading
import time

server = socket.create_server(("127.0.0.1", int(sys.argv[1])))


def send(peer):
    while True:
        peer.sendall(b"price 17.5\n")
        time.sleep(0.5)


while True:
    threading.Thread(target=send, args=(server.accept()[0],), daemon=True).start()
