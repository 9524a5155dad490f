import socket
import sys
import time

server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    client, _ = server.accept()
    while client.recv(8000):
        time.sleep(0.02)
