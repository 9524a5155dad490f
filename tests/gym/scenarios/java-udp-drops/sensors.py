import socket
import sys
import time

sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
number = 0
while True:
    for _ in range(10):
        number += 1
        sock.sendto(b"meter=%d;value=%d;" % (number % 500, number) + b"." * 200, ("127.0.0.1", int(sys.argv[1])))
    time.sleep(0.01)
