import ctypes
import socket
import sys
import threading
import time

ctypes.CDLL(None).prctl(15, b"resolver", 0, 0, 0)
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind((sys.argv[1], 53))


def answer(data, who):
    time.sleep(0.4)
    end = data.index(b"\0", 12) + 5
    sock.sendto(data[:2] + b"\x81\x80\0\1\0\1\0\0\0\0" + data[12:end] + b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4\x7f\0\0\1", who)


while True:
    threading.Thread(target=answer, args=sock.recvfrom(512), daemon=True).start()
