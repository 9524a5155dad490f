import socket
import sys
import threading
import time


def take():
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as sock:
        while True:
            sock.sendall(b"*3\r\n$5\r\nBLPOP\r\n$4\r\njobs\r\n$1\r\n0\r\n")
            sock.recv(4096)


for _ in range(4):
    threading.Thread(target=take, daemon=True).start()
time.sleep(600)
