import socket
import sys

with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as server:
    kept = []
    while True:
        kept.append(server.accept())
