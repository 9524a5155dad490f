import socket
import sys


def count_hit(port):
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.sendall(b"INCR hits\r\n")
        sock.recv(100)


while True:
    count_hit(int(sys.argv[1]))
