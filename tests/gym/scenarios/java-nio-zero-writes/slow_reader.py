import socket
import sys
import threading
import time

listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))


def drip(connection):
    while connection.recv(2000):
        time.sleep(0.1)


while True:
    threading.Thread(target=drip, args=(listener.accept()[0],), daemon=True).start()
