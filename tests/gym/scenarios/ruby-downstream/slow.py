import socket
import sys
import threading
import time


def serve(client: socket.socket) -> None:
    while client.recv(100):
        time.sleep(0.3)
        client.sendall(b"ok\n")


with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as server:
    while True:
        threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
