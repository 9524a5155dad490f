import ctypes
import socket
import sys
import threading
import time

ctypes.CDLL(None).prctl(15, b"subscribers", 0, 0, 0)


def read(pause):
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.connect(("127.0.0.1", int(sys.argv[1])))
        while sock.recv(2048):
            time.sleep(pause)


for number in range(6):
    threading.Thread(target=read, args=(0.5 if number == 0 else 0,), daemon=True).start()
threading.Event().wait()
