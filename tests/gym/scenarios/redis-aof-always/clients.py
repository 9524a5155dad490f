import socket
import sys
import threading
import time


def run(number):
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as sock:
        while True:
            sock.sendall(b"INCR page:%d\r\n" % number)
            sock.recv(4000)


for number in range(4):
    threading.Thread(target=run, args=(number,), daemon=True).start()
time.sleep(600)
