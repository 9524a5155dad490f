import socket
import sys

sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind(("127.0.0.1", int(sys.argv[1])))
counts = {}
while True:
    name = sock.recv(512).split(b":")[0]
    counts[name] = counts.get(name, 0) + 1
