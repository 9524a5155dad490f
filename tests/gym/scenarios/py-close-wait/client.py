import socket
import sys
import time

while True:
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as sock:
        sock.sendall(b"mail\n")
    time.sleep(0.04)
