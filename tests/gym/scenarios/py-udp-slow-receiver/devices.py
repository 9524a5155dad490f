import ctypes
import socket
import sys
import time

ctypes.CDLL(None).prctl(15, b"devices", 0, 0, 0)
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    for _ in range(20):
        sender.sendto(b"<13>router: link up " + b"." * 400, ("127.0.0.1", int(sys.argv[1])))
    time.sleep(0.02)
