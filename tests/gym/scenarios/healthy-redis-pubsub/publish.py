import socket
import sys
import time

store = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
while True:
    store.sendall(b"PUBLISH prices 17.5\r\n")
    store.recv(100)
    time.sleep(0.1)
