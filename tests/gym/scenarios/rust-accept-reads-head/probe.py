import ctypes
import socket
import sys
import time

ctypes.CDLL(None).prctl(15, b"probe", 0, 0, 0)
while True:
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))):
        time.sleep(1.5)
    time.sleep(0.2)
