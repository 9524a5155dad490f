import ctypes
import socket
import sys
import time

ctypes.CDLL(None).prctl(15, b"collector", 0, 0, 0)
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.bind(("127.0.0.1", int(sys.argv[1])))


def store_line(line):
    time.sleep(0.002)


while True:
    store_line(receiver.recv(2048))
