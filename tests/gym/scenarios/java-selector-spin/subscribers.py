import ctypes
import socket
import sys
import time

ctypes.CDLL(None).prctl(15, b"subscribers", 0, 0, 0)
sockets = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(5)]
while True:
    for sock in sockets:
        sock.sendall(b"ping\n")
    time.sleep(0.5)
