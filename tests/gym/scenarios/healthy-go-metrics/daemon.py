import socket
import sys

with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
    sock.bind(("127.0.0.1", int(sys.argv[1])))
    while True:
        sock.recv(512)
