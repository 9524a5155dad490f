import ctypes
import socket
import sys
import threading

ctypes.CDLL(None).prctl(15, b"loadgen", 0, 0, 0)


def pass_gate():
    while True:
        try:
            with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 10) as connection:
                connection.sendall(b"ticket?\n")
                connection.recv(100)
        except OSError:
            pass


for _ in range(12):
    threading.Thread(target=pass_gate, daemon=True).start()
threading.Event().wait()
