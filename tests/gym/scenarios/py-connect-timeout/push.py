import socket
import time


def push_metric(value):
    try:
        with socket.create_connection(("10.77.0.9", 8125), timeout=1.5) as sock:
            sock.sendall(value)
    except OSError:
        pass


while True:
    push_metric(b"orders:1")
    time.sleep(0.1)
