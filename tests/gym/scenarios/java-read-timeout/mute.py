import socket
import sys

server = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=100)
kept = []
while True:
    kept.append(server.accept()[0])
    if len(kept) > 200:
        kept.pop(0).close()
